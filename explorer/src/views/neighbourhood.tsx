/** A node among its neighbours: edges as wide as their weights, and the weights in a table. */

import { schemeTableau10 } from "d3-scale-chromatic";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { NodeAxis } from "../data";
import { FONT, shortened } from "../geometry";
import { graphOf, LONGEST_NAME, NAME, type Graph, type Node } from "../graph";
import { at, loadMatrix, type HeadChoice, type Matrix } from "../matrix";
import { shade } from "../picture";
import { aligned, numberAt, unitAt, written } from "../reading";
import { visible } from "../units";
import { Outcomes } from "./outcomes";
import { registerView, type Scene } from "./view";

const TABLE = 290;
const BELOW = 46; // room for the legend

/** Classes in the order in which they appear, each with its colour. */
function coloursOfClasses(axis: NodeAxis, ink: Scene["ink"]): Map<string, string> {
  const classes = [...new Set(axis.labels ?? [])].filter((label) => label !== "");
  return new Map(classes.map((label, number) => [label, schemeTableau10[number % schemeTableau10.length] ?? ink.faint]));
}

function useMatrices({ data, map, state }: Scene, choices: readonly HeadChoice[]): readonly Matrix[] | null {
  const key = choices.join();
  const [loaded, setLoaded] = useState<{ map: typeof map; key: string; matrices: readonly Matrix[] } | null>(null);
  useEffect(() => {
    let wanted = true;
    void Promise.all(choices.map((choice) => loadMatrix(data, map, choice, state.level, state.special))).then(
      (matrices) => wanted && setLoaded({ map, key, matrices }),
    );
    return () => {
      wanted = false;
    };
  }, [data, map, key, state.level, state.special]);
  return loaded?.map === map && loaded.key === key ? loaded.matrices : null;
}

interface PictureProps {
  scene: Scene;
  graph: Graph;
  matrix: Matrix;
  names: boolean;
  over: number | null;
  point?: (node: Node | null) => void;
  press?: (node: Node | null) => void;
}

function Picture({ scene, graph, matrix, names, over, point, press }: PictureProps) {
  const { state, ink, colours } = scene;
  const classes = coloursOfClasses(scene.cols as NodeAxis, ink);
  const fill = (label: string): string => classes.get(label) ?? ink.faint;
  const [x, y] = [graph.width / 2, graph.height / 2];
  const small = Math.min(graph.width, graph.height) < 300;
  const step = (row: number, col: number): number => shade(matrix, row, at(matrix, row, col), state);
  const stroke = (row: number, col: number, least: number): string => colours.css[Math.max(step(row, col), least)]!;
  const hidden = (row: number, col: number): boolean => at(matrix, row, col) < state.threshold;
  // Heavy edges lie on top.
  const order = [...graph.first].sort((a, b) => at(matrix, graph.row, a.col) - at(matrix, graph.row, b.col));
  const self = graph.self < 0 ? 0 : at(matrix, graph.row, graph.self);
  const { dot, widest } = graph;
  // Widths are relative to the heaviest edge, as are the bars of the table; colours follow the scale.
  const heaviest = [...graph.first.map((node) => node.col), ...(graph.self < 0 ? [] : [graph.self])].reduce(
    (most, col) => Math.max(most, at(matrix, graph.row, col)),
    1e-9,
  );
  const wide = (col: number): number => 0.8 + (widest * at(matrix, graph.row, col)) / heaviest;
  const name = (node: Node) => {
    const turned = graph.radial && names;
    const back = Math.cos(node.angle) < 0;
    const away = dot + 6;
    const [dx, dy] = [Math.cos(node.angle) * away, Math.sin(node.angle) * away];
    const flat = Math.abs(Math.cos(node.angle)) < 0.3;
    const turnedBy = turned ? ` rotate(${(node.angle * 180) / Math.PI + (back ? 180 : 0)})` : "";
    return (
      <text
        transform={`translate(${node.x + dx} ${node.y + dy + (turned || !flat ? 0 : Math.sign(dy) * 4)})${turnedBy}`}
        text-anchor={!turned && flat ? "middle" : back ? "end" : "start"}
        dominant-baseline="central"
        font-weight={over === node.col ? 650 : 400}
        fill={ink.text}
        pointer-events="none"
      >
        {shortened(visible(node.name), LONGEST_NAME, NAME)}
      </text>
    );
  };
  const target = (node: Node, faint: boolean) => (
    <g
      class="node"
      data-col={node.col}
      data-hop={faint ? 2 : 1}
      onMouseEnter={() => point?.(node)}
      onMouseLeave={() => point?.(null)}
      onClick={() => press?.(node)}
    >
      <circle cx={node.x} cy={node.y} r={faint ? Math.min(graph.reach, 5) : graph.reach} fill="transparent" />
      <circle
        cx={node.x}
        cy={node.y}
        r={faint ? 2.5 : dot}
        fill={fill(node.label)}
        fill-opacity={faint ? 0.45 : 1}
        stroke={over === node.col ? ink.accent : ink.ground}
        stroke-width={over === node.col ? 2.5 : 1}
      />
    </g>
  );
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={graph.width}
      height={graph.height}
      viewBox={`0 0 ${graph.width} ${graph.height}`}
      font-family={FONT}
      font-size={NAME}
    >
      <g fill="none" stroke-linecap="round">
        {graph.far.map(({ from, to, row }) => (
          <line
            class="far"
            x1={from.x}
            y1={from.y}
            x2={to.x}
            y2={to.y}
            stroke={ink.faint}
            stroke-width={0.5 + (step(row, to.col) / 255) * 3}
            stroke-opacity={hidden(row, to.col) ? 0 : over === from.col ? 0.6 : 0.16}
          />
        ))}
        {order.map((node) => (
          <line
            class="edge-to"
            data-col={node.col}
            x1={x}
            y1={y}
            x2={node.x}
            y2={node.y}
            stroke={over === node.col ? ink.accent : stroke(graph.row, node.col, 56)}
            stroke-width={wide(node.col)}
            stroke-opacity={hidden(graph.row, node.col) ? 0 : 0.9}
          />
        ))}
      </g>
      {graph.second.map((node) => target(node, true))}
      {graph.first.map((node) => target(node, false))}
      {graph.first.map((node) => (over === node.col && names ? name(node) : names && node.named ? name(node) : null))}
      <g class="node centre" onClick={() => press?.(null)}>
        <circle cx={x} cy={y} r={small ? 7 : 12} fill={fill(graph.label)} stroke={ink.ground} stroke-width={2} />
        {self > 0 && (
          <circle
            class="self"
            cx={x}
            cy={y}
            r={(small ? 9 : 15) + wide(graph.self) / 4}
            fill="none"
            stroke={stroke(graph.row, graph.self, 56)}
            stroke-width={wide(graph.self) / 2}
          />
        )}
        {names && (
          <text
            x={x}
            y={y + 32}
            text-anchor="middle"
            font-weight={650}
            fill={ink.text}
            stroke={ink.ground}
            stroke-width={4}
            paint-order="stroke"
          >
            {shortened(visible(graph.name), 220, NAME)}
          </text>
        )}
      </g>
    </svg>
  );
}

function Neighbourhood(scene: Scene) {
  const { map, matrix, state, update, width, height, ink, item } = scene;
  const heads = Array.from({ length: map.heads }, (_, head) => head);
  const split = state.split && map.heads > 1;
  const loaded = useMatrices(scene, ["max", ...(split ? heads : [])]);
  const [pointed, setPointed] = useState<Node | null>(null);
  const wide = Math.max(width - TABLE, 240);
  const verdict = item.outcomes.length > 0 ? 64 : 0;
  const high = Math.max(height - BELOW - verdict, 200);
  const grid = Math.ceil(Math.sqrt((map.heads * wide) / high / 1.2));
  const cell = { width: Math.floor(wide / grid) - 6, height: Math.max(Math.floor(high / Math.ceil(map.heads / grid)) - 28, 120) };
  const all = loaded?.[0];
  const graph = useMemo(
    () => all && graphOf(scene, all, split ? cell.width : wide, split ? cell.height : high, !split),
    [all, matrix, state.pin, scene.rows.kind === "nodes" ? 0 : state.cursor, split, wide, high, cell.width, cell.height],
  );
  if (!all || !graph) return <p class="empty">Unpacking …</p>;
  const query = matrix.rows.list[graph.row]!.pieces[0]!;
  const over = pointed?.col ?? (state.cursor ? unitAt(matrix.cols, state.cursor.key) : null);
  const read = (col: number): void => update({ cursor: { query, key: matrix.cols.list[col]!.pieces[0]! } });
  const point = (node: Node | null): void => {
    setPointed(node);
    if (node) read(node.col);
  };
  /** A click on a node that has a row of its own moves it to the centre; a click on the centre goes back. */
  const press = (node: Node | null): void => {
    setPointed(null);
    if (!node) update({ pin: null });
    else if (node.row >= 0 && matrix.rows.list.length > 1)
      update({ pin: { side: "query", piece: matrix.rows.list[node.row]!.pieces[0]! }, cursor: null });
  };
  const shown = { scene, graph, over, point, press };
  const weightOf = (col: number): number => at(matrix, graph.row, col);
  const known = [...graph.first.map((node) => node.col), ...(graph.self >= 0 ? [graph.self] : [])];
  const listed = known.sort((a, b) => weightOf(b) - weightOf(a));
  const cols = scene.cols as NodeAxis;
  const classes = coloursOfClasses(cols, ink);
  const sums = new Map<string, number>();
  for (const col of listed) sums.set(cols.labels?.[col] ?? "", (sums.get(cols.labels?.[col] ?? "") ?? 0) + weightOf(col));
  const largest = weightOf(listed[0] ?? 0);
  return (
    <div
      class="frame neighbourhood"
      tabIndex={0}
      role="application"
      aria-roledescription="neighbourhood"
      aria-label={`Neighbourhood of ${visible(graph.name)}: ${graph.first.length} neighbours. Left and right move.`}
    >
      <div class="drawing">
        <Outcomes outcomes={item.outcomes} otherwise="" />
        {split ? (
          <div class="heads">
            {heads.map((head) => (
              <figure>
                <Picture {...shown} matrix={loaded[head + 1]!} names={false} />
                <figcaption>head {head}</figcaption>
              </figure>
            ))}
          </div>
        ) : (
          <Picture {...shown} matrix={matrix} names />
        )}
        {pointed && (
          <div
            class="tip"
            style={
              split
                ? { right: "8px", top: `${verdict + 8}px` }
                : {
                    left: `${Math.min(pointed.x + 14, wide - 170)}px`,
                    top: `${verdict + (pointed.y > high - 90 ? pointed.y - 80 : pointed.y + 14)}px`,
                  }
            }
          >
            <bdi>{visible(pointed.name)}</bdi>
            {pointed.label && (
              <span class="faint">
                <bdi>{visible(pointed.label)}</bdi>
              </span>
            )}
            <b>{numberAt(matrix, graph.row, pointed.col)}</b>
          </div>
        )}
        <p class="classes">
          {[...classes].map(([label, colour]) =>
            sums.has(label) ? (
              <span>
                <i style={{ background: colour }} /> <bdi>{visible(label)}</bdi>{" "}
                <span class="faint">{written(sums.get(label)!)}</span>
              </span>
            ) : null,
          )}
          {graph.cut > 0 && <span class="faint">{graph.cut} nodes of the second hop are not drawn</span>}
        </p>
      </div>
      <section class="top" aria-label="Weights">
        <div class="options">
          {map.heads > 1 && (
            <button role="switch" aria-checked={state.split} onClick={() => update({ split: !state.split })}>
              Heads side by side
            </button>
          )}
        </div>
        <h3>
          {graph.first.length.toLocaleString("en")} {graph.first.length === 1 ? "neighbour" : "neighbours"} of <bdi>{visible(graph.name)}</bdi>
        </h3>
        <p class="faint">
          Largest {written(largest)}: <b>{(largest * listed.length).toFixed(1)} ×</b> an even share
        </p>
        <ol>
          {listed.map((col) => {
            const node = graph.first.find((each) => each.col === col) ?? null;
            return (
              <li
                data-col={col}
                data-focus={over === col}
                title={cols.labels?.[col] || undefined}
                onMouseEnter={() => read(col)}
                onClick={() => node && press(node)}
              >
                <bdi>
                  <i style={{ background: classes.get(cols.labels?.[col] ?? "") ?? ink.faint }} />{" "}
                  {col === graph.self && <span class="faint" title="The node itself">↺ </span>}
                  {visible(cols.names[col]!)}
                </bdi>
                <span class="meter" aria-hidden="true">
                  <span style={{ width: `${largest > 0 ? (100 * weightOf(col)) / largest : 0}%` }} />
                </span>
                <span class="number">{aligned(weightOf(col))}</span>
              </li>
            );
          })}
        </ol>
      </section>
    </div>
  );
}

async function draw(scene: Scene) {
  const { data, map, state, ink } = scene;
  const all = await loadMatrix(data, map, "max", state.level, state.special);
  const graph = graphOf(scene, all, 900, 760);
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={900} height={760} viewBox="0 0 900 760">
      <rect width={900} height={760} fill={ink.ground} />
      <Picture scene={scene} graph={graph} matrix={scene.matrix} names over={null} />
    </svg>
  );
}

registerView({
  name: "nodes",
  title: "Neighbourhood",
  hint: "A node among its neighbours, with edges as wide as their weights.",
  accepts: (_rows, cols) => cols.kind === "nodes",
  reads: true,
  Component: Neighbourhood,
  draw,
});
