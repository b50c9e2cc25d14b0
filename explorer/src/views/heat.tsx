/** The heat map: rows attend to columns. A recording has its spectrogram above the columns. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { profile } from "../focus";
import { layoutOf, rowInFocus, soundOf } from "../heat/layout";
import { paint } from "../heat/paint";
import { draw } from "../heat/still";
import { Tiles } from "../heat/tiles";
import { linkedUnits } from "../links";
import { cursorIn, numberAt } from "../reading";
import { Player, useSpectrogram } from "../sound";
import { visible } from "../units";
import { registerView, type Scene } from "./view";

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
  const layout = useMemo(() => layoutOf(scene, width, height, state.zoom), [matrix, scene.map, width, height, state.zoom]);
  const image = useMemo(
    () => new Tiles(matrix, state, colours, layout, devicePixelRatio),
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

  // What is in the middle stays there when the zoom changes.
  const before = useRef(layout);
  useEffect(() => {
    const box = frame.current;
    const [old, [x, y]] = [before.current, [(width - layout.left) / 2, (height - layout.top) / 2]];
    before.current = layout;
    if (!box || old === layout) return;
    box.scrollLeft = ((box.scrollLeft + x) * layout.wide) / old.wide - x;
    box.scrollTop = ((box.scrollTop + y) * layout.high) / old.high - y;
  }, [layout]);

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
