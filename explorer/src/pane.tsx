/** One item's map, drawn by the chosen view. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { coloursOf } from "./colour";
import { axesOf, type AttentionMap, type Data } from "./data";
import { loadMatrix, type HeadChoice, type Matrix } from "./matrix";
import { Reading } from "./reading";
import { fitting, type Choice, type State, type Update } from "./state";
import { inkOf } from "./theme";
import type { Scene, View } from "./views/view";

interface PaneProps {
  data: Data;
  state: State;
  update: Update;
  choice: Choice;
  view: View;
  dark: boolean;
  onScene: (scene: Scene | null) => void;
}

export function Pane({ data, state, update, choice, view, dark, onScene }: PaneProps) {
  const item = data.items[choice.item]!;
  const map = item.maps[choice.map]!;
  const { rows, cols } = axesOf(data, map);
  const [loaded, setLoaded] = useState<{ map: AttentionMap; matrix: Matrix } | null>(null);
  const [failure, setFailure] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });

  useEffect(() => {
    let wanted = true;
    loadMatrix(data, map, choice.head, state.level, state.special).then(
      (matrix) => wanted && setLoaded({ map, matrix }),
      (error: unknown) => wanted && setFailure(String(error)),
    );
    return () => {
      wanted = false;
    };
  }, [data, map, choice.head, state.level, state.special]);

  useEffect(() => {
    const target = box.current!;
    const measure = (): void => {
      const { clientWidth, clientHeight } = target;
      setSize((old) =>
        old.width === clientWidth && old.height === clientHeight ? old : { width: clientWidth, height: clientHeight },
      );
    };
    const observer = new ResizeObserver(measure);
    observer.observe(target);
    measure();
    return () => observer.disconnect();
  }, []);

  const colours = useMemo(() => coloursOf(state.palette, dark), [state.palette, dark]);
  const ink = useMemo(() => inkOf(dark), [dark]);
  const ready = loaded?.map === map && size.width > 0 && view.accepts(rows, cols, item, data);
  const scene: Scene | null = ready
    ? { data, state, update, choice, item, map, rows, cols, matrix: loaded.matrix, colours, ink, ...size }
    : null;
  // Before the browser can deliver a key: the keyboard reads the scene.
  useLayoutEffect(() => onScene(scene));

  return (
    <>
      <div class="view" ref={box} data-ready={scene !== null}>
        {scene ? (
          <view.Component {...scene} />
        ) : (
          <p class="empty">{failure || (loaded ? `${view.title} cannot show this map.` : "Unpacking …")}</p>
        )}
      </div>
      {view.reads && (
        <div class="status" role="status" aria-live="polite">
          {scene && state.cursor ? (
            <Reading matrix={scene.matrix} state={state} />
          ) : (
            <span class="faint">Point at the drawing or press an arrow key to read a weight.</span>
          )}
        </div>
      )}
    </>
  );
}

interface ChoicesProps {
  data: Data;
  state: State;
  update: Update;
  number: number;
  choice: Choice;
}

/** The item, layer and head of a pane. */
export function PaneChoices({ data, state, update, number, choice }: ChoicesProps) {
  const item = data.items[choice.item]!;
  const map = item.maps[choice.map]!;
  const choose = (change: Partial<Choice>): void => {
    const next = fitting({ ...choice, ...change }, data);
    const [left, right] = state.panes;
    update({ panes: right === undefined ? [next] : number === 0 ? [next, right] : [left, next] });
  };
  const beside = number === 1 ? " on the right" : "";
  const step = (by: number): void => choose({ map: (choice.map + by + item.maps.length) % item.maps.length });
  return (
    <div class="choices">
      {data.items.length > 1 ? (
        <select
          aria-label={`Item${beside}`}
          value={choice.item}
          onChange={(event) => choose({ item: Number(event.currentTarget.value) })}
        >
          {data.items.map((each, index) => (
            <option value={index}>{each.title}</option>
          ))}
        </select>
      ) : (
        <strong dir="auto">{item.title}</strong>
      )}
      {item.maps.length > 1 && (
        <span class="stepper">
          <button aria-label={`Previous layer${beside}`} title="Previous layer ([)" onClick={() => step(-1)}>
            ‹
          </button>
          <select
            aria-label={`Layer${beside}`}
            value={choice.map}
            onChange={(event) => choose({ map: Number(event.currentTarget.value) })}
          >
            {item.maps.map((each, index) => (
              <option value={index}>{mapTitle(each)}</option>
            ))}
          </select>
          <button aria-label={`Next layer${beside}`} title="Next layer (])" onClick={() => step(1)}>
            ›
          </button>
        </span>
      )}
      {map.heads > 1 && (
        <select
          aria-label={`Head${beside}`}
          value={String(choice.head)}
          onChange={(event) => choose({ head: headOf(event.currentTarget.value) })}
        >
          <optgroup label="All heads">
            <option value="mean">mean of {map.heads} heads</option>
            <option value="max">max of {map.heads} heads</option>
          </optgroup>
          <optgroup label="One head">
            {Array.from({ length: map.heads }, (_, head) => (
              <option value={String(head)}>head {head}</option>
            ))}
          </optgroup>
        </select>
      )}
      <Notes notes={item.notes} />
    </div>
  );
}

/** What is not shown, and other things to know: one line, which opens on a click. */
function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <details class="notes">
      <summary dir="auto">{notes.length === 1 ? notes[0] : `${notes.length} notes: ${notes[0]}`}</summary>
      <ul>
        {notes.map((note) => (
          <li dir="auto">{note}</li>
        ))}
      </ul>
    </details>
  );
}

export function mapTitle(map: AttentionMap): string {
  return map.layer === null || map.name.includes(String(map.layer)) ? map.name : `layer ${map.layer} · ${map.name}`;
}

function headOf(value: string): HeadChoice {
  return value === "mean" || value === "max" ? value : Number(value);
}
