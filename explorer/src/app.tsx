/** The page: the reader's choices and the views. */

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Controls } from "./controls";
import { axesOf, type Data } from "./data";
import { Downloads } from "./download";
import { Help } from "./help";
import { onKey } from "./keyboard";
import { Legend } from "./legend";
import { Pane, PaneChoices } from "./pane";
import { firstState, fitting, fromFragment, toFragment, unknownView, usualView, type State } from "./state";
import { useDark } from "./theme";
import { allViews, type Scene } from "./views/view";

export function App({ data }: { data: Data }) {
  const first = useMemo(() => firstState(data), [data]);
  const names = useMemo(() => allViews().map((view) => view.name), []);
  const [state, setState] = useState(() => fromFragment(location.hash, first, data, names));
  const [unknown, setUnknown] = useState(() => unknownView(location.hash, names));
  const [help, setHelp] = useState(false);
  const scenes = useRef<(Scene | null)[]>([null, null]);
  // The newest state, even before it is drawn: keys may come faster than drawings.
  const newest = useRef(state);
  const update = useCallback((change: Partial<State>) => {
    newest.current = { ...newest.current, ...change };
    setState(newest.current);
    if (change.view !== undefined) setUnknown(null);
  }, []);
  const dark = useDark(state.theme);

  // The address follows the state with a delay, so that hovering does not flood the history.
  const written = useRef(toFragment(state, first));
  useEffect(() => {
    const fragment = toFragment(state, first);
    if (fragment === written.current) return;
    const timer = setTimeout(() => {
      written.current = fragment;
      history.replaceState(null, "", `#${fragment}`);
    }, 120);
    return () => clearTimeout(timer);
  }, [state, first]);
  useEffect(() => {
    const restore = (): void => {
      const fragment = location.hash.replace(/^#/, "");
      if (fragment === written.current) return;
      update(fromFragment(fragment, first, data, names));
      setUnknown(unknownView(fragment, names));
    };
    addEventListener("hashchange", restore);
    return () => removeEventListener("hashchange", restore);
  }, [first, data, names]);

  useEffect(() => {
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  }, [dark]);

  const left = fitting(state.panes[0], data);
  const item = data.items[left.item]!;
  const map = item.maps[left.map]!;
  const axes = axesOf(data, map);
  const views = allViews().filter((view) =>
    data.items.some((each) =>
      each.maps.some((one) => view.accepts(data.axes[one.rows]!, data.axes[one.cols]!, each, data)),
    ),
  );
  const fits = (name: string): boolean => {
    const view = views.find((each) => each.name === name);
    return view !== undefined && (view.whole === true || view.accepts(axes.rows, axes.cols, item, data));
  };
  const usual = usualView(axes.rows, axes.cols);
  const view = [state.view, usual].flatMap((name) => views.filter((each) => each.name === name && fits(name)))[0]!;

  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void =>
      onKey(event, { data, state: newest.current, update, matrix: scenes.current[0]?.matrix ?? null, views, help, setHelp });
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });

  // The page's first view was not asked for: leaving it needs no explanation.
  const asked = state.view !== first.view;
  const missing = allViews().find((each) => asked && each.name === state.view && each !== view);
  const note =
    unknown !== null
      ? `There is no view called “${unknown}”: ${view.title} is shown.`
      : missing && `${missing.title} cannot show this map: ${view.title} is shown.`;
  const panes = view.whole ? [left] : state.panes.map((choice) => fitting(choice, data));
  return (
    <>
      <header>
        <div class="name">
          <Eye />
          <h1 dir="auto">{data.title}</h1>
        </div>
        <nav role="tablist" aria-label="Views">
          {views.map((each, number) => (
            <button
              role="tab"
              key={each.name}
              id={`tab-${each.name}`}
              aria-selected={each === view}
              aria-controls="panes"
              disabled={!fits(each.name)}
              title={`${each.hint} (key ${number + 1})`}
              onClick={() => update({ view: each.name })}
            >
              {each.title}
            </button>
          ))}
        </nav>
        <div class="tools">
          <Downloads view={view} scenes={() => scenes.current.slice(0, panes.length)} title={data.title} />
          <button
            class="icon"
            aria-label={dark ? "Light colours" : "Dark colours"}
            title={`${dark ? "Light" : "Dark"} colours (d)`}
            onClick={() => update({ theme: dark ? "light" : "dark" })}
          >
            {dark ? "☀" : "☾"}
          </button>
          <button class="icon" aria-label="Help and keys" title="Help and keys (?)" onClick={() => setHelp(true)}>
            ?
          </button>
        </div>
      </header>
      <div class={view.whole ? "body bare" : "body"}>
        {!view.whole && <Controls data={data} state={state} update={update} view={view} />}
        <main>
          {note && (
            <p class="note" role="alert" dir="auto">
              {note}
            </p>
          )}
          <div id="panes" role="tabpanel" aria-labelledby={`tab-${view.name}`} class={panes.length > 1 ? "two" : "one"}>
            {panes.map((choice, number) => (
              <section key={number} class="pane" aria-label={data.items[choice.item]!.title}>
                {!view.whole && <PaneChoices data={data} state={state} update={update} number={number} choice={choice} />}
                <Pane
                  data={data}
                  state={state}
                  update={update}
                  choice={choice}
                  view={view}
                  dark={dark}
                  onScene={(scene) => (scenes.current[number] = scene)}
                />
              </section>
            ))}
          </div>
        </main>
      </div>
      <footer>
        {!view.whole && <Legend state={state} dark={dark} />}
        <p class="precision">{precision(data.levels)}</p>
      </footer>
      <Help open={help} close={() => setHelp(false)} views={views} levels={data.levels} />
    </>
  );
}

/** How exact the stored weights are. */
function precision(levels: number): string {
  const share = ((100 / levels) * (1 + 0.25 / levels)).toPrecision(2);
  if (levels > 255) return "Weights are stored in 16 bits: the numbers are exact to four digits.";
  const bits = levels === 255 ? "8 bits" : `${levels + 1} levels, to keep the file small`;
  return `Weights are stored in ${bits}: the error is at most ${share} % of a row's largest weight, and less for small weights.`;
}

function Eye() {
  return (
    <svg viewBox="0 0 32 20" width="30" height="19" aria-hidden="true" class="eye">
      <path d="M1 10C6 2.7 11 1 16 1s10 1.7 15 9c-5 7.3-10 9-15 9S6 17.3 1 10Z" fill="none" stroke-width="2" />
      <circle cx="19" cy="10" r="4.6" />
    </svg>
  );
}
