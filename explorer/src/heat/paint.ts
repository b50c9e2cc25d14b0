/** Paints a heat map: cells, links, cursor, pin, labels, and the spectrogram of a recording. */

import type { SoundAxis } from "../data";
import { FONT, shortened } from "../geometry";
import { cursorIn, unitAt } from "../reading";
import { paintStrip, paintTimes, TIMES } from "../sound";
import { visible, type Unit } from "../units";
import type { Scene } from "../views/view";
import { framesInFocus, LABEL, sideSigns, soundOf, type Layout } from "./layout";
import type { Tiles } from "./tiles";

const SLANT = Math.PI / 3;

export function paint(
  context: CanvasRenderingContext2D,
  scene: Scene,
  layout: Layout,
  image: Tiles,
  links: readonly (readonly [number, number])[],
  scroll: { x: number; y: number },
  spectrogram: HTMLCanvasElement | null,
): void {
  const { matrix, state, ink, width, height } = scene;
  const { left, top, wide, high } = layout;
  const rows = matrix.rows.list;
  const cols = matrix.cols.list;
  const [across, down] = [cols.length * wide, rows.length * high];
  const least = Math.min(wide, high);
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height - top);
  context.clip();
  context.translate(left, top);
  context.imageSmoothingEnabled = false;
  image.draw(context, scroll.x, scroll.y, width - left, height - top);
  context.translate(-scroll.x, -scroll.y);
  if (least >= 7) {
    context.strokeStyle = ink.line;
    context.lineWidth = 0.5;
    context.beginPath();
    const [bottom, right] = [Math.min(down, scroll.y + height), Math.min(across, scroll.x + width)];
    for (let j = Math.floor(scroll.x / wide); j * wide <= right + 0.01; j++) {
      context.moveTo(j * wide, scroll.y);
      context.lineTo(j * wide, bottom);
    }
    for (let i = Math.floor(scroll.y / high); i * high <= bottom + 0.01; i++) {
      context.moveTo(scroll.x, i * high);
      context.lineTo(right, i * high);
    }
    context.stroke();
  } else {
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.strokeRect(0, 0, across, down);
  }
  context.strokeStyle = ink.accent;
  context.lineWidth = Math.min(Math.max(least / 12, 0.75), 2);
  for (const [row, col] of links) {
    const inset = context.lineWidth;
    context.strokeRect(col * wide + inset, row * high + inset, wide - 2 * inset, high - 2 * inset);
  }
  const place = cursorIn(matrix, state.cursor);
  if (place) {
    context.strokeStyle = ink.text;
    context.lineWidth = 1;
    context.globalAlpha = 0.55;
    context.strokeRect(0, place.row * high, across, Math.max(high, 1));
    context.strokeRect(place.col * wide, 0, Math.max(wide, 1), down);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeRect(place.col * wide, place.row * high, Math.max(wide, 3), Math.max(high, 3));
  }
  const pinned = state.pin ? unitAt(state.pin.side === "query" ? matrix.rows : matrix.cols, state.pin.piece) : -1;
  if (pinned >= 0) {
    context.fillStyle = ink.ground;
    context.globalAlpha = 0.72;
    const size = state.pin!.side === "query" ? high : wide;
    const [start, end] = [pinned * size, pinned * size + Math.max(size, 1)];
    if (state.pin!.side === "query") {
      context.fillRect(0, 0, across, start);
      context.fillRect(0, end, across, down - end);
    } else {
      context.fillRect(0, 0, start, down);
      context.fillRect(end, 0, across - end, down);
    }
    context.globalAlpha = 1;
    context.strokeStyle = ink.accent;
    context.lineWidth = 2;
    if (state.pin!.side === "query") context.strokeRect(0, start, across, end - start);
    else context.strokeRect(start, 0, end - start, down);
  }
  context.restore();
  paintLabels(context, rows, cols, layout, scroll, ink, place, state.pin?.side ?? null, pinned, {
    width,
    height,
  });
  const sound = soundOf(scene);
  if (sound) paintSound(context, scene, sound, layout, scroll.x, spectrogram, place?.col ?? null);
  paintSides(context, scene, layout);
}

/** The time axis and the spectrogram, on the columns of the map. */
function paintSound(
  context: CanvasRenderingContext2D,
  scene: Scene,
  axis: SoundAxis,
  { left, wide, strip }: Layout,
  scrolled: number,
  picture: HTMLCanvasElement | null,
  col: number | null,
): void {
  const { ink, width } = scene;
  const across = scene.matrix.cols.list.length * wide;
  context.save();
  context.beginPath();
  context.rect(left - 1, 0, width - left + 1, TIMES + strip + 1);
  context.clip();
  context.translate(left - scrolled, TIMES);
  paintTimes(context, axis, across, ink);
  if (picture) paintStrip(context, { axis, picture, ink, width: across, height: strip, shares: framesInFocus(scene) });
  if (col !== null) {
    context.strokeStyle = ink.text;
    context.lineWidth = 1;
    context.strokeRect(col * wide, 0, Math.max(wide, 1), strip);
  }
  context.restore();
}

/** The names of the two sides, in the corner between their labels. */
function paintSides(context: CanvasRenderingContext2D, { map, ink }: Scene, { left, top, gutter }: Layout): void {
  context.font = `11px ${FONT}`;
  context.fillStyle = ink.faint;
  context.textAlign = "right";
  context.textBaseline = "alphabetic";
  sideSigns(map).forEach((sign, line) => context.fillText(shortened(sign, gutter - 9, 11), left - 7, top - 22 + 14 * line));
}

function paintLabels(
  context: CanvasRenderingContext2D,
  rows: readonly Unit[],
  cols: readonly Unit[],
  { left, top, wide, high, slanted, gutter, strip }: Layout,
  scroll: { x: number; y: number },
  ink: Scene["ink"],
  place: { row: number; col: number } | null,
  pinnedSide: "query" | "key" | null,
  pinned: number,
  room: { width: number; height: number },
): void {
  // If there is no room for all labels, every n-th is written, and the one at the cursor.
  const each = (cell: number): number => Math.max(1, Math.ceil((LABEL + 1) / cell));
  context.font = `${LABEL}px ${FONT}`;
  context.textBaseline = "middle";
  const style = (unit: Unit, strong: boolean, isPinned: boolean): void => {
    context.font = `${unit.special ? "italic " : ""}${strong || isPinned ? 600 : 400} ${LABEL}px ${FONT}`;
    context.fillStyle = isPinned ? ink.accent : strong ? ink.text : unit.special ? ink.faint : ink.text;
  };
  const shown = (number: number, here: number | undefined, isPinned: boolean, every: number): boolean => {
    if (number === here || isPinned) return true;
    if (number % every !== 0) return false;
    return here === undefined || every === 1 || Math.abs(number - here) >= every;
  };
  context.save();
  context.beginPath();
  context.rect(0, top - 7, left, room.height - top + 7);
  context.clip();
  context.textAlign = "right";
  const firstRow = Math.max(0, Math.floor(scroll.y / high));
  const lastRow = Math.min(rows.length, Math.ceil((scroll.y + room.height - top) / high));
  for (let i = firstRow; i < lastRow; i++) {
    const isPinned = pinnedSide === "query" && pinned === i;
    if (!shown(i, place?.row, isPinned, each(high))) continue;
    style(rows[i]!, place?.row === i, isPinned);
    context.fillText(shortened(visible(rows[i]!.label), gutter - 12), left - 7, top + (i + 0.5) * high - scroll.y);
  }
  context.restore();
  if (strip > 0) return; // a time axis stands there
  context.save();
  context.beginPath();
  context.rect(left - 7, 0, room.width - left + 7, top);
  context.clip();
  const firstCol = Math.max(0, Math.floor(scroll.x / wide) - 8);
  const lastCol = Math.min(cols.length, Math.ceil((scroll.x + room.width - left) / wide));
  for (let j = firstCol; j < lastCol; j++) {
    const isPinned = pinnedSide === "key" && pinned === j;
    if (!shown(j, place?.col, isPinned, each(slanted ? wide * Math.sin(SLANT) : wide))) continue;
    style(cols[j]!, place?.col === j, isPinned);
    const x = left + (j + 0.5) * wide - scroll.x;
    if (x < left - 1) continue;
    context.save();
    context.translate(x, top - 7);
    if (slanted) {
      context.rotate(-SLANT);
      context.textAlign = "left";
      context.fillText(shortened(visible(cols[j]!.label), 120), 0, 0);
    } else {
      context.textAlign = "center";
      context.fillText(visible(cols[j]!.label), 0, -4);
    }
    context.restore();
  }
  context.restore();
}
