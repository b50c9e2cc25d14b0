/** The measures of every item, with what they mean. */

import { FONT, textWidth } from "../geometry";
import { written } from "../reading";
import type { Data } from "../data";
import { registerView, type Scene } from "./view";

interface Line {
  readonly name: string;
  readonly meaning: string;
  readonly values: readonly (string | null)[];
}

function linesOf(data: Data): Line[] {
  const names = [...new Set(data.items.flatMap((item) => item.measures.map((measure) => measure.name)))];
  return names.map((name) => {
    const found = data.items.map((item) => item.measures.find((measure) => measure.name === name));
    return {
      name,
      meaning: found.find((measure) => measure)?.meaning ?? "",
      values: found.map((measure) => (measure ? shown(measure.value) : null)),
    };
  });
}

function shown(value: number | string): string {
  if (typeof value === "string") return value;
  return value < 0 ? `−${written(-value)}` : written(value);
}

function Measures({ data }: Scene) {
  return (
    <div class="frame measures" tabIndex={0} role="region" aria-label="Measures">
      <table>
        <thead>
          <tr>
            <th scope="col">Measure, and what it means</th>
            {data.items.map((item) => (
              <th scope="col" class="number" dir="auto">
                {item.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {linesOf(data).map((line) => (
            <tr>
              <th scope="row">
                {line.name}
                <p class="meaning">{line.meaning}</p>
              </th>
              {line.values.map((value) => (
                <td class="number">{value ?? "–"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const SIZE = 13;
const MEANING = 460;

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(`${last} ${word}`, SIZE) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function draw({ data, ink }: Scene) {
  const lines = linesOf(data);
  const first = Math.max(...lines.map((line) => textWidth(line.name, SIZE, 650)), 60) + 24;
  const widths = data.items.map((item, place) =>
    Math.max(textWidth(item.title, 12), ...lines.map((line) => textWidth(line.values[place] ?? "–", SIZE))),
  );
  const ends = widths.map((_, place) => 20 + first + widths.slice(0, place + 1).reduce((sum, each) => sum + each + 24, 0));
  const meaning = (ends.at(-1) ?? 20 + first) + 24;
  let y = 30;
  const body = lines.map((line) => {
    const text = wrapped(line.meaning, MEANING);
    const top = y + 26;
    y = top + Math.max(text.length, 1) * 18;
    return (
      <g>
        <line x1={20} x2={meaning + MEANING} y1={top - 20} y2={top - 20} stroke={ink.line} />
        <text x={20} y={top} font-weight={650} fill={ink.text}>
          {line.name}
        </text>
        {line.values.map((value, place) => (
          <text x={ends[place]} y={top} text-anchor="end" fill={ink.text}>
            {value ?? "–"}
          </text>
        ))}
        {text.map((each, number) => (
          <text x={meaning} y={top + number * 18} fill={ink.faint}>
            {each}
          </text>
        ))}
      </g>
    );
  });
  const width = meaning + MEANING + 20;
  const height = y + 16;
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      font-family={FONT}
      font-size={SIZE}
    >
      <rect width={width} height={height} fill={ink.ground} />
      <g fill={ink.faint} font-size={12}>
        {data.items.map((item, place) => (
          <text x={ends[place]} y={24} text-anchor="end">
            {item.title}
          </text>
        ))}
      </g>
      {body}
    </svg>
  );
}

registerView({
  name: "measures",
  title: "Measures",
  hint: "Figures about each item, and their meaning.",
  accepts: (_rows, _cols, _item, data) => data.items.some((item) => item.measures.length > 0),
  whole: true,
  Component: Measures,
  draw,
});
