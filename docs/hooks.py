"""What mkdocs calls: adds the generated pages and typesets the equations of the written ones."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import pages
from equations import equation


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the generated pages into the navigation, after the written ones."""
    reference: list[dict[str, Any]] = [{"The heart": [{p.title: p.path} for p in pages.heart()]}]
    for kind, listed in pages.members().items():
        index, *members = listed
        reference.append({kind.capitalize(): [index.path, *({p.title: p.path} for p in members)]})
    reference += [{p.title: p.path} for p in pages.modules()]
    config.nav = [*(config.nav or []), *reference]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the text of the generated pages; none of them is ever written into docs/."""
    generated = [*pages.heart(), *pages.modules(), *(p for listed in pages.members().values() for p in listed)]
    for page in generated:
        files.append(File.generated(config, page.path, content=page.text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """In written pages `$$...$$` is an equation and `[[Sparsemax]]` a link to the page of that class."""
    if page.file.generated_by is not None:
        return markdown
    markdown = re.sub(
        r"\$\$(.+?)\$\$",
        lambda found: equation(found[1].strip()),
        markdown,
        flags=re.DOTALL,
    )
    return re.sub(r"\[\[(\w+)\]\]", lambda found: f"[{found[1]}]({pages.path_of(found[1])})", markdown)
