/** Sizes of text and of cells. */

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

let context: CanvasRenderingContext2D | null = null;
const measured = new Map<string, number>();

export function textWidth(text: string, size = 12, weight = 400): number {
  const key = `${size} ${weight} ${text}`;
  let width = measured.get(key);
  if (width === undefined) {
    context ??= document.createElement("canvas").getContext("2d")!;
    context.font = `${weight} ${size}px ${FONT}`;
    width = context.measureText(text).width;
    if (measured.size > 20_000) measured.clear();
    measured.set(key, width);
  }
  return width;
}

/** The text, cut to a width, never between a character and its marks. */
export function shortened(text: string, width: number, size = 12): string {
  if (text.length * size < width || textWidth(text, size) <= width) return text;
  const characters = Array.from(new Intl.Segmenter().segment(text), (each) => each.segment);
  let low = 1;
  let high = characters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${characters.slice(0, middle).join("")}…`, size) <= width) low = middle;
    else high = middle - 1;
  }
  return `${characters.slice(0, low).join("")}…`;
}

const STRONG = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;

/** Whether a text runs from right to left, as its first letter says. */
export function runsLeft(labels: readonly { label: string; special: boolean }[]): boolean {
  for (const { label, special } of labels) {
    const letter = special ? null : STRONG.exec(label);
    if (letter) return RIGHT_TO_LEFT.test(letter[0]);
  }
  return false;
}
