/** The view as a file. */

import { render, type VNode } from "preact";
import { useRef } from "preact/hooks";
import type { Scene, View } from "./views/view";

interface Props {
  view: View;
  scenes: () => (Scene | null)[];
  title: string;
}

export function Downloads({ view, scenes, title }: Props) {
  const menu = useRef<HTMLDetailsElement>(null);
  const save = async (kind: "png" | "svg"): Promise<void> => {
    if (menu.current) menu.current.open = false;
    const shown = scenes().filter((scene) => scene !== null);
    if (shown.length === 0) return;
    const drawn = await Promise.all(shown.map(async (scene) => toSvg(await view.draw(scene))));
    const svg = sideBySide(drawn, shown[0]!.ink.ground);
    const blob = kind === "svg" ? new Blob([svg.text], { type: "image/svg+xml" }) : await toPng(svg);
    const name = `${title} ${view.title}`.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80);
    deliver(blob, `${name || "attention"}.${kind}`);
  };
  return (
    <details class="menu" ref={menu}>
      <summary aria-label="Download" title="Download this view">
        ↓
      </summary>
      <div>
        <button onClick={() => void save("png")}>PNG picture</button>
        <button onClick={() => void save("svg")}>SVG drawing</button>
      </div>
    </details>
  );
}

interface Drawn {
  readonly element: Element;
  readonly width: number;
  readonly height: number;
}

function toSvg(node: VNode): Drawn {
  const holder = document.createElement("div");
  render(node, holder);
  const element = holder.firstElementChild!;
  return {
    element,
    width: Number(element.getAttribute("width")),
    height: Number(element.getAttribute("height")),
  };
}

function sideBySide(drawn: readonly Drawn[], ground: string): { text: string; width: number; height: number } {
  const width = drawn.reduce((sum, each) => sum + each.width, 0);
  const height = Math.max(...drawn.map((each) => each.height));
  const name = "http://www.w3.org/2000/svg";
  const root = document.createElementNS(name, "svg");
  root.setAttribute("width", String(width));
  root.setAttribute("height", String(height));
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const back = document.createElementNS(name, "rect");
  back.setAttribute("width", "100%");
  back.setAttribute("height", "100%");
  back.setAttribute("fill", ground);
  root.append(back);
  let x = 0;
  for (const each of drawn) {
    each.element.setAttribute("x", String(x));
    root.append(each.element);
    x += each.width;
  }
  return { text: new XMLSerializer().serializeToString(root), width, height };
}

async function toPng({ text, width, height }: { text: string; width: number; height: number }): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    const scale = Math.min(2, 12000 / Math.max(width, height)); // browsers refuse larger pictures
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

function deliver(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
