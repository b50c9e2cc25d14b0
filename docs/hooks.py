"""What mkdocs calls: adds the generated pages and typesets the equations of the written ones."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import command_pages
import pages
from equations import equation


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the generated pages into the navigation, after the written ones."""
    configurations = pages.configurations()
    reference: list[dict[str, Any]] = [
        _group("Commands", command_pages.commands()),
        {configurations.title: configurations.path},
        {"The heart": [{p.title: p.path} for p in pages.heart()]},
    ]
    reference += [_group(kind.capitalize(), listed) for kind, listed in pages.members().items()]
    reference += [{p.title: p.path} for p in pages.modules()]
    config.nav = [*(config.nav or []), {"Reference": reference}]
    return config


def _group(title: str, listed: list[pages.Page]) -> dict[str, Any]:
    index, *members = listed
    return {title: [index.path, *({p.title: p.path} for p in members)]}


def generated_pages() -> list[pages.Page]:
    """Every page that is made from the source."""
    several = [command_pages.commands(), *pages.members().values()]
    return [*pages.heart(), *pages.modules(), pages.configurations(), *(p for listed in several for p in listed)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the text of the generated pages; none of them is ever written into docs/."""
    for page in generated_pages():
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
