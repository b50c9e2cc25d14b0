/** The page's data, and the weights, which are unpacked when they are first needed. */

export interface TextAxis {
  readonly kind: "text";
  readonly pieces: readonly string[];
  readonly words: readonly (readonly number[])[] | null;
  readonly special: readonly number[];
  readonly sentences: readonly (readonly number[])[] | null;
  /** The pieces that people marked as the reason, if they were asked. */
  readonly gold: readonly number[] | null;
  /** Of a text that a model wrote: where it took each piece from; "" for its vocabulary. */
  readonly origins: readonly string[] | null;
}

export interface ImageAxis {
  readonly kind: "image";
  readonly png: string;
  readonly grid: readonly [number, number];
  readonly leading: readonly string[];
}

/** Frames of a recording, below its spectrogram. */
export interface SoundAxis {
  readonly kind: "sound";
  readonly png: string;
  readonly frames: number;
  readonly seconds: number;
  readonly wav: string | null;
}

export interface NodeAxis {
  readonly kind: "nodes";
  readonly names: readonly string[];
  readonly labels: readonly string[] | null;
  readonly centre: number;
}

/** The visits of a patient, and what was recorded at each. */
export interface VisitAxis {
  readonly kind: "visits";
  readonly names: readonly string[];
  readonly codes: readonly (readonly string[])[];
  readonly days: readonly number[] | null;
  readonly static: readonly string[];
}

export type Axis = TextAxis | ImageAxis | SoundAxis | NodeAxis | VisitAxis;

/** What codes add to the scores of outcomes: with the bias, the sum of all is the score. */
export interface Contributions {
  readonly outcomes: readonly string[];
  readonly link: "logistic" | "softmax";
  readonly bias: readonly number[];
  /** By code and outcome. */
  readonly static: readonly (readonly number[])[];
  /** By visit, code and outcome. */
  readonly codes: readonly (readonly (readonly number[])[])[];
}

export interface AttentionMap {
  readonly name: string;
  readonly layer: number | null;
  readonly heads: number;
  /** How many of each row's weights are stored, with their columns; null if all are. */
  readonly top: number | null;
  /** The number of the block that holds the first head. */
  readonly block: number;
  /** Indices into `axes`. */
  readonly rows: number;
  readonly cols: number;
  /** What to call rows and columns, if not output and input. */
  readonly sides: readonly [string, string] | null;
  /** Of one row: the columns that the model picked and read; null where it reads all of them by weight. */
  readonly picked: readonly number[] | null;
  /** Over visits: what codes add to the answer of each row, if the model can say. */
  readonly contributions: readonly Contributions[] | null;
}

export interface Measure {
  readonly name: string;
  readonly value: number | string;
  readonly meaning: string;
}

/** A label with its probability; `gold` marks the true one. */
export interface Outcome {
  readonly label: string;
  readonly probability: number | null;
  readonly gold: boolean;
}

export interface Item {
  readonly title: string;
  readonly maps: readonly AttentionMap[];
  readonly measures: readonly Measure[];
  /** (key, query) pairs. */
  readonly links: readonly (readonly [number, number])[] | null;
  /** For classification: the predicted label first. */
  readonly outcomes: readonly Outcome[];
  /** What a reader should know, such as what is not shown. */
  readonly notes: readonly string[];
}

export interface Data {
  readonly title: string;
  readonly levels: number;
  /** Whether the page opens with the first two items side by side. */
  readonly beside: boolean;
  readonly axes: readonly Axis[];
  readonly items: readonly Item[];
}

/** One head: each row's largest weight, and each stored weight as a level relative to it. */
export interface Head {
  readonly largest: Float32Array;
  readonly codes: Uint8Array | Uint16Array;
  /** The columns of the weights, from left to right in each row; null if every column has one. */
  readonly places: Int32Array | null;
}

export function readData(): Data {
  return JSON.parse(document.getElementById("data")?.textContent ?? "") as Data;
}

export function lengthOf(axis: Axis): number {
  switch (axis.kind) {
    case "text":
      return axis.pieces.length;
    case "image":
      return axis.leading.length + axis.grid[0] * axis.grid[1];
    case "sound":
      return axis.frames;
    case "nodes":
    case "visits":
      return axis.names.length;
  }
}

export function axesOf(data: Data, map: AttentionMap): { rows: Axis; cols: Axis } {
  return { rows: data.axes[map.rows]!, cols: data.axes[map.cols]! };
}

const KEPT_BYTES = 256e6;
const kept = new Map<number, Promise<Head>>();
let keptBytes = 0;

/** The weights of one head. Unpacked heads are cached; the least recently used are dropped when they grow too many. */
export function loadHead(data: Data, map: AttentionMap, head: number): Promise<Head> {
  const block = map.block + head;
  const known = kept.get(block);
  if (known) {
    kept.delete(block);
    kept.set(block, known);
    return known;
  }
  const rows = lengthOf(axesOf(data, map).rows);
  const loaded = inflate(document.getElementById(`block-${block}`)?.textContent ?? "").then((bytes) => {
    keptBytes += bytes.byteLength;
    for (const oldest of kept.keys()) {
      if (keptBytes <= KEPT_BYTES || oldest === block) break;
      const gone = kept.get(oldest);
      kept.delete(oldest);
      void gone?.then((each) => (keptBytes -= each.codes.buffer.byteLength));
    }
    const largest = new Float32Array(bytes, 0, rows);
    const count = map.top === null ? undefined : rows * map.top;
    const codes =
      data.levels < 256 ? new Uint8Array(bytes, 4 * rows, count) : new Uint16Array(bytes, 4 * rows, count);
    const places = map.top === null ? null : placesOf(new Uint8Array(bytes, 4 * rows + codes.byteLength), map.top);
    return { largest, codes, places };
  });
  kept.set(block, loaded);
  return loaded;
}

/** Columns are stored as steps to the right, the lowest bytes of all first, then the next, then the highest. */
function placesOf(planes: Uint8Array, perRow: number): Int32Array {
  const count = planes.length / 3;
  const places = new Int32Array(count);
  for (let place = 0, col = 0; place < count; place++) {
    if (place % perRow === 0) col = 0;
    col += planes[place]! | (planes[count + place]! << 8) | (planes[2 * count + place]! << 16);
    places[place] = col;
  }
  return places;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(text: string): Promise<ArrayBuffer> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
