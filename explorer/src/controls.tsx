/** Settings that apply to both panes: units, threshold, colours. */

import type { ComponentChildren } from "preact";
import { axesOf, type Data } from "./data";
import { sideNames } from "./sides";
import { written } from "./reading";
import { fitting, mostZoom, PALETTES, SCALES, type Palette, type Scale, type State, type Update } from "./state";
import { hasLevel, hasSpecial, namePieces, unitsOf, visible, type Level } from "./units";
import type { View } from "./views/view";

interface Props {
  data: Data;
  state: State;
  update: Update;
  view: View;
}

const LEVELS: readonly Level[] = ["pieces", "words", "sentences"];
const SCALE_TITLES: Record<Scale, readonly [string, string]> = {
  one: ["0 to 1", "Full colour is a weight of 1; colour follows the square root of the weight"],
  map: ["Map", "Full colour is the largest weight of this map"],
  row: ["Row", "Full colour is the largest weight of each row"],
};

export function Controls({ data, state, update, view }: Props) {
  const choice = fitting(state.panes[0], data);
  const item = data.items[choice.item]!;
  const { rows, cols } = axesOf(data, item.maps[choice.map]!);
  const beside = state.panes[1] !== undefined;
  const compare = (): void => {
    const [left] = state.panes;
    // The other item if there is one, otherwise another head of this one.
    const other = data.items.length > 1 ? { ...left, item: (left.item + 1) % data.items.length } : { ...left, head: 0 };
    update({ panes: beside ? [left] : [left, fitting(other, data)] });
  };
  const levels = LEVELS.filter((level) => level === "pieces" || data.axes.some((axis) => hasLevel(axis, level)));
  const titles: Record<Level, string> = { pieces: namePieces(data.axes), words: "Words", sentences: "Sentences" };
  const pinned = state.pin && unitsOf(state.pin.side === "query" ? rows : cols, state.level, true);
  const pinnedUnit = pinned?.list[pinned.of[state.pin?.piece ?? -1] ?? -1];
  return (
    <aside aria-label="Controls">
      {(levels.length > 1 || data.axes.some(hasSpecial) || data.items.some((each) => each.links)) && <Group title="Units">
        {levels.length > 1 && (
          <div class="segments" role="radiogroup" aria-label="Units">
            {levels.map((level) => (
              <Segment
                title={titles[level]}
                chosen={state.level === level}
                disabled={!hasLevel(rows, level) && !hasLevel(cols, level)}
                onClick={() => update({ level })}
              />
            ))}
          </div>
        )}
        {data.axes.some(hasSpecial) && (
          <Toggle title="Special tokens" chosen={state.special} onClick={() => update({ special: !state.special })} />
        )}
        {data.items.some((each) => each.links) && (
          <Toggle title="Known links" chosen={state.links} onClick={() => update({ links: !state.links })} />
        )}
      </Group>}
      <Group title="Threshold">
        <div class="slider">
          <input
            type="range"
            min="0"
            max="100"
            step="1"
            aria-label="Hide weights below"
            aria-valuetext={written(state.threshold)}
            value={Math.round(100 * Math.cbrt(state.threshold))}
            onInput={(event) => {
              // Finer near zero, where most weights are.
              const threshold = Number(((Number(event.currentTarget.value) / 100) ** 3).toPrecision(3));
              update({ threshold });
            }}
          />
          <output>{state.threshold === 0 ? "all" : `≥ ${written(state.threshold)}`}</output>
        </div>
      </Group>
      <Group title="Colour scale">
        <div class="segments" role="radiogroup" aria-label="Colour scale">
          {SCALES.map((scale) => (
            <Segment
              title={SCALE_TITLES[scale][0]}
              hint={SCALE_TITLES[scale][1]}
              chosen={state.scale === scale}
              onClick={() => update({ scale })}
            />
          ))}
        </div>
        {state.scale === "row" && (
          <p class="caution">Every row is stretched to full colour, so even an untrained model looks sharp.</p>
        )}
        <label class="field">
          <span>Palette</span>
          <select
            aria-label="Palette"
            value={state.palette}
            onChange={(event) => update({ palette: event.currentTarget.value as Palette })}
          >
            {PALETTES.map((palette) => (
              <option value={palette}>{palette}</option>
            ))}
          </select>
        </label>
      </Group>
      {view.zooms && (
        <Group title="Zoom">
          <div class="slider">
            <input
              type="range"
              min="0"
              max={Math.log2(mostZoom(rows, cols))}
              step="0.25"
              aria-label="Zoom"
              value={Math.log2(state.zoom)}
              onInput={(event) => update({ zoom: Number((2 ** Number(event.currentTarget.value)).toPrecision(3)) })}
            />
            <output>{state.zoom === 1 ? "fit" : `${state.zoom < 100 ? state.zoom.toPrecision(2) : Math.round(state.zoom)} ×`}</output>
          </div>
        </Group>
      )}
      {(data.items.length > 1 || item.maps.some((map) => map.heads > 1)) && <Group title="Compare">
        <Toggle
          title={data.items.length > 1 ? "Two items side by side" : "Two heads side by side"}
          chosen={beside}
          onClick={compare}
        />
      </Group>}
      <Group title="Pinned">
        {state.pin ? (
          <button class="pinned" onClick={() => update({ pin: null })} aria-label="Unpin">
            <bdi>{visible(pinnedUnit?.label ?? String(state.pin.piece))}</bdi>
            <span class="faint">{sideNames(item.maps[choice.map]!)[state.pin.side]}</span>
            <span aria-hidden="true">×</span>
          </button>
        ) : (
          <p class="faint">Click a token to pin it.</p>
        )}
      </Group>
    </aside>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="group">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

interface SegmentProps {
  title: string;
  hint?: string;
  chosen: boolean;
  disabled?: boolean;
  onClick: () => void;
}

function Segment({ title, hint, chosen, disabled, onClick }: SegmentProps) {
  return (
    <button role="radio" aria-checked={chosen} title={hint} disabled={disabled} onClick={onClick}>
      {title}
    </button>
  );
}

function Toggle({ title, chosen, onClick }: { title: string; chosen: boolean; onClick: () => void }) {
  return (
    <button class="toggle" role="switch" aria-checked={chosen} onClick={onClick}>
      <span>{title}</span>
      <span class="knob" aria-hidden="true" />
    </button>
  );
}
