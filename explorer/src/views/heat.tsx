/** The heat map: rows attend to columns. A recording has its spectrogram above the columns. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SoundAxis } from "../data";
import { profile } from "../focus";
import { FONT, shortened, textWidth } from "../geometry";
import type { Matrix } from "../matrix";
import { picture } from "../picture";
import { cursorIn, numberAt, unitAt } from "../reading";
import { linkedUnits } from "../links";
import { sideNames } from "../sides";
import { inked, loadSpectrogram, paintStrip, paintTimes, Player, spotlight, TIMES, timeTicks, useSpectrogram } from "../sound";
import { visible, type Unit } from "../units";
import { registerView, type Scene } from "./view";

const LARGEST_CELL = 36;
const WIDEST = 1.5; // times its height
const LABEL = 12;
const STRIP = 130; // the height of a spectrogram

interface Layout {
  readonly left: number;
  readonly top: number;
  /** A cell's width and height. */
  readonly wide: number;
  readonly high: number;
  readonly slanted: boolean;
  /** Room for the labels of rows. */
  readonly gutter: number;
  /** The height of the spectrogram above the columns; 0 if there is none. */
  readonly strip: number;
}

/** As large as fits, unless the reader has zoomed in. */
function layoutOf(matrix: Matrix, width: number, height: number, zoom: number, sound: boolean): Layout {
  const widest = (units: readonly Unit[]): number =>
    units.slice(0, 600).reduce((most, unit) => Math.max(most, textWidth(visible(unit.label).slice(0, 40), LABEL, 600)), 0);
  const left = Math.max(Math.min(widest(matrix.rows.list), 150) + 14, 30);
  if (sound) {
    const strip = Math.min(STRIP, Math.max(height * 0.3, 40));
    const top = TIMES + strip + 6;
    const wide = Math.max((width - left - 8) / matrix.cols.list.length, 0.2);
    const high = Math.min(Math.max((height - top - 8) / Math.max(matrix.rows.list.length, 1), 0.2), LARGEST_CELL);
    return { left, top, wide: wide * zoom, high: high * zoom, slanted: false, gutter: left, strip };
  }
  const columns = Math.min(widest(matrix.cols.list), 120);
  const slanted = columns > 14;
  const top = (slanted ? columns * 0.87 + 10 : LABEL) + 12;
  const overhang = slanted ? columns * 0.5 : 0;
  const room = (space: number, units: readonly Unit[]): number =>
    Math.min(Math.max(space / Math.max(units.length, 1), 0.2), LARGEST_CELL);
  const across = room(width - left - overhang - 8, matrix.cols.list);
  const down = room(height - top - 8, matrix.rows.list);
  const wide = Math.min(across, down * WIDEST);
  const high = Math.min(down, across * WIDEST);
  // Small maps are centred.
  const spare = Math.max(0, width - left - overhang - 8 - wide * matrix.cols.list.length);
  return { left: left + (zoom === 1 ? spare / 2 : 0), top, wide: wide * zoom, high: high * zoom, slanted, gutter: left, strip: 0 };
}

function soundOf({ cols }: Scene): SoundAxis | null {
  return cols.kind === "sound" ? cols : null;
}

/** The row in focus: the pinned one, otherwise the one at the cursor. */
function rowInFocus({ matrix, state }: Scene): number | null {
  const pinned = state.pin?.side === "query" ? unitAt(matrix.rows, state.pin.piece) : -1;
  const row = pinned >= 0 ? pinned : state.cursor ? unitAt(matrix.rows, state.cursor.query) : -1;
  return row >= 0 ? row : null;
}

/** How strongly the row in focus attends to each frame. */
function framesInFocus(scene: Scene): Float32Array | null {
  const row = rowInFocus(scene);
  return row === null ? null : spotlight(profile(scene.matrix, { side: "query", unit: row }));
}

function Heat(scene: Scene) {
  const sound = soundOf(scene);
  const row = sound && rowInFocus(scene);
  if (!sound?.wav) return <Sheet {...scene} />;
  const part =
    row === null
      ? null
      : { weights: profile(scene.matrix, { side: "query", unit: row }), label: visible(scene.matrix.rows.list[row]!.label) };
  return (
    <>
      <div class="above-player">
        <Sheet {...scene} height={scene.height - 40} />
      </div>
      <Player axis={sound} part={part} />
    </>
  );
}

function Sheet(scene: Scene) {
  const { matrix, state, update, width, height, colours, ink } = scene;
  const sound = soundOf(scene);
  const spectrogram = useSpectrogram(sound);
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState({ x: 0, y: 0 });
  const [pointer, setPointer] = useState<{ x: number; y: number } | null>(null);
  const layout = useMemo(() => layoutOf(matrix, width, height, state.zoom, sound !== null), [matrix, width, height, state.zoom]);
  const image = useMemo(
    () => picture(matrix, state, colours, Math.min(layout.wide, layout.high) * devicePixelRatio),
    [matrix, state.scale, state.threshold, colours, layout],
  );
  const links = useMemo(() => (state.links ? linkedUnits(scene) : []), [scene.item, scene.map, matrix, state.links]);
  const rows = matrix.rows.list.length;
  const cols = matrix.cols.list.length;

  useEffect(() => {
    const target = canvas.current;
    const context = target?.getContext("2d");
    if (!target || !context) return;
    const [wide, high] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (target.width !== wide || target.height !== high) [target.width, target.height] = [wide, high];
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    paint(context, scene, layout, image, links, scroll, spectrogram);
  }, [matrix, state, width, height, colours, ink, layout, image, links, scroll, spectrogram]);

  // The cell at the cursor stays in sight when arrow keys move it.
  useEffect(() => {
    const place = cursorIn(matrix, state.cursor);
    const box = frame.current;
    if (!place || !box || pointer || state.zoom === 1) return;
    const x = place.col * layout.wide;
    const y = place.row * layout.high;
    const seen = { x: box.clientWidth - layout.left, y: box.clientHeight - layout.top };
    if (x < box.scrollLeft || x + layout.wide > box.scrollLeft + seen.x) box.scrollLeft = x - seen.x / 2;
    if (y < box.scrollTop || y + layout.high > box.scrollTop + seen.y) box.scrollTop = y - seen.y / 2;
  }, [state.cursor, layout]);

  const placeOf = (event: MouseEvent): { row: number; col: number; x: number; y: number } => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const col = x < layout.left ? -1 : Math.floor((x - layout.left + scroll.x) / layout.wide);
    // The spectrogram belongs to its columns.
    const row = y < layout.top ? -1 : Math.floor((y - layout.top + scroll.y) / layout.high);
    return { row: row < rows ? row : -1, col: col < cols ? col : -1, x, y };
  };
  const hover = (event: MouseEvent): void => {
    const { row, col, x, y } = placeOf(event);
    if (row < 0 || col < 0) {
      setPointer(null);
      return;
    }
    setPointer({ x, y });
    const query = matrix.rows.list[row]!.pieces[0]!;
    const key = matrix.cols.list[col]!.pieces[0]!;
    if (state.cursor?.query !== query || state.cursor.key !== key) update({ cursor: { query, key } });
  };
  const press = (event: MouseEvent): void => {
    const { row, col } = placeOf(event);
    if (row < 0 && col < 0) return;
    const side = row < 0 ? "key" : "query";
    const piece = row < 0 ? matrix.cols.list[col]!.pieces[0]! : matrix.rows.list[row]!.pieces[0]!;
    const same = state.pin?.side === side && state.pin.piece === piece;
    update({ pin: same ? null : { side, piece } });
  };

  const place = cursorIn(matrix, state.cursor);
  return (
    <div
      class="frame"
      ref={frame}
      onScroll={(event) => {
        setScroll({ x: event.currentTarget.scrollLeft, y: event.currentTarget.scrollTop });
        setPointer(null); // the cell has moved away
      }}
    >
      <canvas
        ref={canvas}
        class="sheet"
        style={{ width: `${width}px`, height: `${height}px` }}
        tabIndex={0}
        role="application"
        aria-roledescription="heat map"
        aria-label={`Heat map of ${scene.map.name}: ${rows} rows attend to ${cols} columns. Arrow keys move, Enter pins.`}
        onMouseMove={hover}
        onMouseLeave={() => setPointer(null)}
        onClick={press}
      />
      <div
        class="extent"
        style={{ width: `${layout.left + cols * layout.wide}px`, height: `${layout.top + rows * layout.high}px` }}
      />
      {place && pointer && (
        <div
          class="tip"
          style={{
            left: `${scroll.x + Math.min(pointer.x + 14, width - 190)}px`,
            top: `${scroll.y + (pointer.y > height - 90 ? pointer.y - 74 : pointer.y + 16)}px`,
          }}
        >
          <span>
            <bdi>{visible(matrix.rows.list[place.row]!.label)}</bdi> →{" "}
            <bdi>{visible(matrix.cols.list[place.col]!.label)}</bdi>
          </span>
          <b>{numberAt(matrix, place.row, place.col)}</b>
        </div>
      )}
    </div>
  );
}

function paint(
  context: CanvasRenderingContext2D,
  scene: Scene,
  layout: Layout,
  image: HTMLCanvasElement,
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
  context.translate(left - scroll.x, top - scroll.y);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, across, down);
  if (least >= 7) {
    context.strokeStyle = ink.line;
    context.lineWidth = 0.5;
    context.beginPath();
    for (let j = 0; j <= cols.length; j++) {
      context.moveTo(j * wide, 0);
      context.lineTo(j * wide, down);
    }
    for (let i = 0; i <= rows.length; i++) {
      context.moveTo(0, i * high);
      context.lineTo(across, i * high);
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
  else paintSides(context, scene, layout);
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
function paintSides(context: CanvasRenderingContext2D, { map, ink }: Scene, { left, top }: Layout): void {
  const names = sideNames(map);
  const long = Math.max(textWidth(`${names.key} →`, 11), textWidth(`${names.query} ↓`, 11));
  if (top < 34 || left < long + 8) return;
  context.font = `11px ${FONT}`;
  context.fillStyle = ink.faint;
  context.textAlign = "right";
  context.textBaseline = "alphabetic";
  context.fillText(`${names.key} →`, left - 7, top - 20);
  context.fillText(`${names.query} ↓`, left - 7, top - 6);
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
    if (!shown(j, place?.col, isPinned, each(wide))) continue;
    style(cols[j]!, place?.col === j, isPinned);
    const x = left + (j + 0.5) * wide - scroll.x;
    if (x < left - 1) continue;
    context.save();
    context.translate(x, top - 7);
    if (slanted) {
      context.rotate(-Math.PI / 3);
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

/** For a file: cells as one small picture that is enlarged without blur, labels as text. */
async function draw(scene: Scene) {
  const { matrix, ink, colours, state } = scene;
  const sound = soundOf(scene);
  const { gutter: left, top, slanted, strip, ...cell } = layoutOf(matrix, 1100, sound ? 600 : 1100, 1, sound !== null);
  const [wide, high] = [Math.max(cell.wide, 2), Math.max(cell.high, 2)];
  const rows = matrix.rows.list;
  const cols = matrix.cols.list;
  const [across, down] = [cols.length * wide, rows.length * high];
  const each = (size: number): number => Math.max(1, Math.ceil((LABEL + 1) / size));
  const width = left + across + (slanted ? 70 : 8);
  const height = top + down + 8;
  const links = state.links ? linkedUnits(scene) : [];
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <rect width={width} height={height} fill={ink.ground} />
      <image
        href={picture(matrix, state, colours, 1).toDataURL()}
        x={left}
        y={top}
        width={across}
        height={down}
        preserveAspectRatio="none"
        image-rendering="pixelated"
      />
      <rect
        x={left}
        y={top}
        width={across}
        height={down}
        fill="none"
        stroke={ink.line}
      />
      {sound && <StillSound axis={sound} scene={scene} picture={await loadSpectrogram(sound)} x={left} width={across} strip={strip} />}
      <g font-family={FONT} font-size={LABEL} fill={ink.text}>
        {rows.map((unit, i) =>
          i % each(high) === 0 ? (
            <text x={left - 7} y={top + (i + 0.5) * high} text-anchor="end" dominant-baseline="central">
              {shortened(visible(unit.label), 150)}
            </text>
          ) : null,
        )}
        {cols.map((unit, j) =>
          !sound && j % each(wide) === 0 ? (
            <text
              transform={`translate(${left + (j + 0.5) * wide} ${top - 7})${slanted ? " rotate(-60)" : ""}`}
              text-anchor={slanted ? "start" : "middle"}
              dominant-baseline={slanted ? "central" : "auto"}
            >
              {shortened(visible(unit.label), 120)}
            </text>
          ) : null,
        )}
      </g>
      <g fill="none" stroke={ink.accent} stroke-width={Math.min(Math.max(Math.min(wide, high) / 12, 0.75), 2)}>
        {links.map(([row, col]) => (
          <rect x={left + col * wide + 1} y={top + row * high + 1} width={wide - 2} height={high - 2} />
        ))}
      </g>
    </svg>
  );
}

interface StillProps {
  axis: SoundAxis;
  scene: Scene;
  picture: HTMLCanvasElement;
  x: number;
  width: number;
  strip: number;
}

function StillSound({ axis, scene, picture, x, width, strip }: StillProps) {
  const { ink } = scene;
  return (
    <g transform={`translate(${x} ${TIMES})`} font-family={FONT} font-size={11} fill={ink.faint}>
      <image href={inked(picture, ink.text).toDataURL()} width={width} height={strip} preserveAspectRatio="none" />
      <rect width={width} height={strip} fill="none" stroke={ink.line} />
      {timeTicks(axis, width).map((tick) => (
        <text x={tick.x} y={-5}>
          {tick.text}
        </text>
      ))}
    </g>
  );
}

registerView({
  name: "heat",
  title: "Heat map",
  hint: "Every weight: rows attend to columns.",
  accepts: () => true,
  zooms: true,
  reads: true,
  Component: Heat,
  draw,
});

