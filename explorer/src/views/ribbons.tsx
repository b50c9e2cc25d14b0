/** Ribbons between the input on the left and the output on the right, as wide as the weights. */

import { linkHorizontal } from "d3-shape";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useFocus, type Focus, type Focusing } from "../focus";
import { FONT, shortened, textWidth } from "../geometry";
import { lengthOf } from "../data";
import { linkedUnits } from "../links";
import { rangeOf, type Matrix } from "../matrix";
import { shade } from "../picture";
import { cursorIn } from "../reading";
import { sideNames } from "../sides";
import { visible, type Unit } from "../units";
import { MOST_LISTED, registerView, type Scene } from "./view";

const MOST = 1200;
const LABEL = 13;

interface Ribbon {
  readonly row: number;
  readonly col: number;
  readonly weight: number;
}

/** The strongest weights, weakest first, so that strong ones lie on top. */
function ribbonsOf(matrix: Matrix, threshold: number, focus: Focus | null): { ribbons: Ribbon[]; cut: number } {
  const found: Ribbon[] = [];
  const least = Math.max(threshold, 1e-6);
  const inside = (row: number, col: number): boolean =>
    !focus || (focus.side === "query" ? row === focus.unit : col === focus.unit);
  // In large maps, consider only weights that can be among the strongest.
  const floor = matrix.values.length > 40_000 && !focus ? nthLargest(matrix.values, MOST) : 0;
  for (let row = 0; row < matrix.rows.list.length; row++) {
    const [from, to] = rangeOf(matrix, row);
    // A hundredth of the row's largest weight would be invisible.
    const enough = Math.max(least, floor, 0.01 * matrix.rowLargest[row]!);
    for (let place = from; place < to; place++) {
      const weight = matrix.values[place]!;
      const col = matrix.stored ? matrix.stored.places[place]! : place - from;
      if (weight >= enough && inside(row, col)) found.push({ row, col, weight });
    }
  }
  found.sort((a, b) => a.weight - b.weight);
  const cut = Math.max(0, found.length - MOST);
  return { ribbons: found.slice(cut), cut: floor > 0 ? Math.max(cut, 1) : cut };
}

function nthLargest(values: Float32Array, n: number): number {
  const sorted = values.slice().sort();
  return sorted[Math.max(0, sorted.length - n)] ?? 0;
}

interface Layout {
  readonly line: number;
  readonly left: number;
  readonly right: number;
  readonly width: number;
  readonly height: number;
}

function layoutOf({ matrix, map }: Scene, width: number, height: number): Layout {
  const rows = matrix.rows.list;
  const cols = matrix.cols.list;
  const most = Math.max(rows.length, cols.length, 1);
  const line = Math.min(Math.max((height - 40) / most, 18), 34);
  const names = sideNames(map);
  const widest = (units: readonly Unit[], name: string): number =>
    Math.min(
      units.reduce((wide, unit) => Math.max(wide, textWidth(visible(unit.label).slice(0, 40), LABEL)), textWidth(name, 12)),
      width * 0.28,
    );
  const inner = Math.min(width, 920);
  return { line, left: widest(cols, names.key) + 26, right: inner - widest(rows, names.query) - 30, width: inner, height: most * line + 34 };
}

const curve = linkHorizontal<{ source: [number, number]; target: [number, number] }, [number, number]>();

function Picture({ scene, layout, focusing }: { scene: Scene; layout: Layout; focusing: Focusing | null }) {
  const { matrix, state, update, colours, ink } = scene;
  const focus = focusing?.focus ?? null;
  const chosen = focusing?.hovered ? focus : (focusing?.pinned ?? null);
  const { ribbons, cut } = useRibbons(matrix, state.threshold, chosen);
  const background = useRibbons(matrix, state.threshold, null);
  const links = useMemo(() => (state.links ? linkedUnits(scene) : []), [scene.item, scene.map, matrix, state.links]);
  const cursor = cursorIn(matrix, state.cursor);
  const { line, left, right } = layout;
  const rows = matrix.rows.list;
  const cols = matrix.cols.list;
  const names = sideNames(scene.map);
  // The shorter text is centred next to the longer one.
  const offset = (length: number): number => 30 + ((Math.max(rows.length, cols.length) - length) * line) / 2;
  const y = (length: number, place: number): number => offset(length) + (place + 0.5) * line;
  const path = (row: number, col: number): string =>
    curve({ source: [left, y(cols.length, col)], target: [right, y(rows.length, row)] }) ?? "";
  const lit = new Map<number, number>();
  if (chosen) for (const each of ribbons) lit.set(chosen.side === "query" ? each.col : each.row, stepOf(each));
  function stepOf({ row, weight }: Ribbon): number {
    return shade(matrix, row, weight, state);
  }
  const widthOf = (weight: number): number => Math.max(0.7, Math.min(weight, 1) * line * 0.72);
  const token = (unit: Unit, place: number, side: "query" | "key") => {
    const isFocus = chosen?.side === side && chosen.unit === place;
    const isPinned = focusing?.pinned?.side === side && focusing.pinned.unit === place;
    const step = chosen && chosen.side !== side ? lit.get(place) : undefined;
    const x = side === "key" ? left - 12 : right + 12;
    const middle = y(side === "query" ? rows.length : cols.length, place);
    const text = shortened(visible(unit.label), side === "key" ? left - 26 : layout.width - right - 26, LABEL);
    const wide = textWidth(text, LABEL, isFocus ? 650 : 400) + 14;
    return (
      <g
        class="token"
        data-side={side}
        data-unit={place}
        onMouseEnter={() => focusing?.point({ side, unit: place })}
        onMouseLeave={() => focusing?.point(null)}
        onClick={() => focusing?.press({ side, unit: place })}
      >
        <rect
          x={side === "key" ? x - wide + 7 : x - 7}
          y={middle - Math.min(line, 26) / 2 + 1}
          width={wide}
          height={Math.min(line, 26) - 2}
          rx={6}
          fill={step !== undefined && step > 8 ? colours.css[step] : "transparent"}
          stroke={isPinned ? ink.accent : "none"}
          stroke-width={1.5}
        />
        <text
          x={x}
          y={middle}
          dominant-baseline="central"
          text-anchor={side === "key" ? "end" : "start"}
          font-weight={isFocus ? 650 : 400}
          font-style={unit.special ? "italic" : "normal"}
          fill={step !== undefined && step > 8 ? colours.ink[step] : unit.special ? ink.faint : ink.text}
        >
          {text}
        </text>
      </g>
    );
  };
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={layout.width}
      height={layout.height}
      viewBox={`0 0 ${layout.width} ${layout.height}`}
      font-family={FONT}
      font-size={LABEL}
    >
      <text x={left - 12} y={12} text-anchor="end" fill={ink.faint} font-size={11}>
        {names.key}
      </text>
      <text x={right + 12} y={12} fill={ink.faint} font-size={11}>
        {names.query}
      </text>
      {cut > 0 && (
        <text x={(left + right) / 2} y={12} text-anchor="middle" fill={ink.faint} font-size={11}>
          the {MOST.toLocaleString("en")} strongest are drawn
        </text>
      )}
      <g fill="none" stroke-linecap="butt">
        {background.ribbons.map((each) => (
          <path
            d={path(each.row, each.col)}
            class="ribbon"
            data-row={each.row}
            data-col={each.col}
            stroke={colours.css[Math.max(stepOf(each), 40)]}
            stroke-width={widthOf(each.weight)}
            stroke-opacity={chosen ? 0.06 : 0.2 + (0.65 * stepOf(each)) / 255}
            onMouseEnter={() =>
              update({ cursor: { query: rows[each.row]!.pieces[0]!, key: cols[each.col]!.pieces[0]! } })
            }
          />
        ))}
        {chosen &&
          ribbons.map((each) => (
            <path
              d={path(each.row, each.col)}
              class="ribbon lit"
              stroke={colours.css[Math.max(stepOf(each), 70)]}
              stroke-width={Math.max(widthOf(each.weight), 1)}
              stroke-opacity={0.9}
              pointer-events="none"
            />
          ))}
        {links.map(([row, col]) => (
          <path
            d={path(row, col)}
            class="link"
            stroke={ink.accent}
            stroke-width={1.4}
            stroke-dasharray="4 4"
            stroke-opacity={0.85}
            pointer-events="none"
          />
        ))}
        {focusing && cursor && !chosen && (
          <path
            d={path(cursor.row, cursor.col)}
            stroke={ink.text}
            stroke-width={1.5}
            class="cursor"
            pointer-events="none"
          />
        )}
      </g>
      {cols.map((unit, place) => token(unit, place, "key"))}
      {rows.map((unit, place) => token(unit, place, "query"))}
    </svg>
  );
}

function useRibbons(matrix: Matrix, threshold: number, focus: Focus | null): ReturnType<typeof ribbonsOf> {
  return useMemo(() => ribbonsOf(matrix, threshold, focus), [matrix, threshold, focus?.side, focus?.unit]);
}

function Ribbons(scene: Scene) {
  const { matrix, width, height, state } = scene;
  const frame = useRef<HTMLDivElement>(null);
  const focusing = useFocus(scene);
  const layout = useMemo(() => layoutOf(scene, width, height), [matrix, scene.map, width, height]);
  const cursor = cursorIn(matrix, state.cursor);
  useEffect(() => {
    const box = frame.current;
    if (!box || !cursor || focusing.hovered || layout.height <= box.clientHeight) return;
    const y = cursor.row * layout.line;
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 60) box.scrollTop = y - box.clientHeight / 2;
  }, [cursor?.row]);
  return (
    <div
      class="frame ribbons"
      ref={frame}
      tabIndex={0}
      role="application"
      aria-roledescription="ribbons"
      aria-label={`Ribbons of ${scene.map.name}: ${matrix.rows.list.length} tokens attend to ${matrix.cols.list.length}. Arrow keys move, Enter pins.`}
    >
      <Picture scene={scene} layout={layout} focusing={focusing} />
    </div>
  );
}

function Still({ scene }: { scene: Scene }) {
  const still: Focusing = { ...useFocus(scene), hovered: false };
  return <Picture scene={scene} layout={layoutOf(scene, 920, 700)} focusing={still.pinned ? still : null} />;
}

registerView({
  name: "ribbons",
  title: "Ribbons",
  hint: "Input and output, joined by ribbons as wide as the weights.",
  accepts: (rows, cols) => rows.kind === "text" && cols.kind === "text" && Math.max(lengthOf(rows), lengthOf(cols)) <= MOST_LISTED,
  reads: true,
  Component: Ribbons,
  draw: (scene) => <Still scene={scene} />,
});
