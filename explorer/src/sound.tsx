/** Recordings: the spectrogram above what attends to it, a time axis, and the sound itself. */

import { scaleLinear } from "d3-scale";
import { useEffect, useState } from "preact/hooks";
import { fromBase64, type SoundAxis } from "./data";
import { FONT } from "./geometry";
import type { Ink } from "./views/view";

/** Height of the time axis. */
export const TIMES = 18;

const pictures = new WeakMap<SoundAxis, Promise<HTMLCanvasElement>>();

/** The spectrogram in the ink of the page: transparent where it is quiet. */
export function loadSpectrogram(axis: SoundAxis): Promise<HTMLCanvasElement> {
  const known = pictures.get(axis) ?? drawSpectrogram(axis);
  pictures.set(axis, known);
  return known;
}

async function drawSpectrogram(axis: SoundAxis): Promise<HTMLCanvasElement> {
  const image = new Image();
  image.src = `data:image/png;base64,${axis.png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d")!;
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let place = 0; place < pixels.data.length; place += 4) {
    const [r, g, b] = pixels.data.subarray(place, place + 3);
    pixels.data[place + 3] = 255 - Math.round((r! + g! + b!) / 3);
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

export function useSpectrogram(axis: SoundAxis | null): HTMLCanvasElement | null {
  const [loaded, setLoaded] = useState<{ axis: SoundAxis; picture: HTMLCanvasElement } | null>(null);
  useEffect(() => {
    let wanted = true;
    if (axis) void loadSpectrogram(axis).then((picture) => wanted && setLoaded({ axis, picture }));
    return () => {
      wanted = false;
    };
  }, [axis]);
  return loaded && loaded.axis === axis ? loaded.picture : null;
}

const copies = new WeakMap<HTMLCanvasElement, Map<string, HTMLCanvasElement>>();

/** A copy of the spectrogram in a colour; its own pixels only say how loud it is. */
export function inked(picture: HTMLCanvasElement, colour: string): HTMLCanvasElement {
  const known = copies.get(picture) ?? new Map<string, HTMLCanvasElement>();
  copies.set(picture, known);
  const made = known.get(colour) ?? tinted(picture, colour);
  known.set(colour, made);
  return made;
}

function tinted(picture: HTMLCanvasElement, colour: string): HTMLCanvasElement {
  const copy = document.createElement("canvas");
  copy.width = picture.width;
  copy.height = picture.height;
  const context = copy.getContext("2d")!;
  context.fillStyle = colour;
  context.fillRect(0, 0, copy.width, copy.height);
  context.globalCompositeOperation = "destination-in";
  context.drawImage(picture, 0, 0);
  return copy;
}

interface Strip {
  readonly axis: SoundAxis;
  readonly picture: HTMLCanvasElement;
  readonly ink: Ink;
  readonly width: number;
  readonly height: number;
  /** How strongly each frame is attended to, 0 to 1; null shows all of it. */
  readonly shares: Float32Array | null;
}

/** Where a token attends, relative to its largest weight: this shows the place; the weights themselves are read off below. */
export function spotlight(weights: Float32Array): Float32Array {
  const most = weights.reduce((largest, weight) => Math.max(largest, weight), 0);
  return weights.map((weight) => (most > 0 ? weight / most : 0));
}

/** Draws the spectrogram from (0, 0): attended frames in the accent colour on full ink, the others pale. */
export function paintStrip(context: CanvasRenderingContext2D, { axis, picture, ink, width, height, shares }: Strip): void {
  context.imageSmoothingEnabled = true;
  context.globalAlpha = shares ? 0.28 : 0.85;
  context.drawImage(inked(picture, ink.text), 0, 0, width, height);
  context.globalAlpha = 1;
  if (shares) {
    const wide = width / axis.frames;
    const dark = inked(picture, ink.text);
    shares.forEach((share, frame) => {
      if (share < 0.02) return;
      const from = (frame * picture.width) / axis.frames;
      context.globalAlpha = 0.3 * share;
      context.fillStyle = ink.accent;
      context.fillRect(frame * wide, 0, wide + 0.3, height);
      context.globalAlpha = share;
      context.drawImage(dark, from, 0, picture.width / axis.frames, picture.height, frame * wide, 0, wide + 0.3, height);
    });
    context.globalAlpha = 1;
  }
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.strokeRect(0, 0, width, height);
}

/** Times along the axis, as many as have room. */
export function timeTicks(axis: SoundAxis, width: number): { x: number; text: string }[] {
  const x = scaleLinear([0, axis.seconds], [0, width]);
  const count = Math.max(2, Math.min(width / 100, 12));
  const text = x.tickFormat(count);
  return x.ticks(count).map((time) => ({ x: x(time), text: `${text(time)} s` }));
}

/** Draws the times above y = 0. */
export function paintTimes(context: CanvasRenderingContext2D, axis: SoundAxis, width: number, ink: Ink): void {
  context.font = `11px ${FONT}`;
  context.textBaseline = "alphabetic";
  context.strokeStyle = ink.faint;
  context.fillStyle = ink.faint;
  context.lineWidth = 1;
  for (const { x, text } of timeTicks(axis, width)) {
    context.beginPath();
    context.moveTo(x, -4);
    context.lineTo(x, 0);
    context.stroke();
    const long = context.measureText(text).width;
    context.textAlign = "left";
    context.fillText(text, Math.min(Math.max(x - long / 2, 0), width - long), -6);
  }
}

/** The shortest stretch with four fifths of the weight, in frames: [first, after the last). */
export function stretchOf(weights: Float32Array): readonly [number, number] {
  const goal = 0.8 * weights.reduce((sum, weight) => sum + weight, 0);
  let best: readonly [number, number] = [0, weights.length];
  if (goal <= 0) return best;
  let sum = 0;
  let start = 0;
  weights.forEach((weight, end) => {
    sum += weight;
    while (sum - weights[start]! >= goal) sum -= weights[start++]!;
    if (sum >= goal - 1e-6 && end + 1 - start < best[1] - best[0]) best = [start, end + 1];
  });
  return best;
}

const SHORTEST = 0.15; // seconds; less is only a click

let speaker: AudioContext | null = null;
const decoded = new WeakMap<SoundAxis, Promise<AudioBuffer>>();
let playing: AudioBufferSourceNode | null = null;

async function play(axis: SoundAxis, from: number, to: number, ended: () => void): Promise<void> {
  speaker ??= new AudioContext();
  await speaker.resume();
  const sound = decoded.get(axis) ?? speaker.decodeAudioData(fromBase64(axis.wav!).buffer);
  decoded.set(axis, sound);
  const buffer = await sound;
  playing?.stop();
  playing = speaker.createBufferSource();
  playing.buffer = buffer;
  playing.connect(speaker.destination);
  playing.onended = ended;
  const middle = (from + to) / 2;
  const long = Math.max(to - from, SHORTEST);
  const start = Math.max(0, Math.min(middle - long / 2, buffer.duration - long));
  playing.start(0, start, long);
}

interface PlayerProps {
  axis: SoundAxis;
  /** The weights over the frames and the name of the token in focus, if there is one. */
  part: { weights: Float32Array; label: string } | null;
}

/** Plays the recording, or the stretch that the token in focus attends to. */
export function Player({ axis, part }: PlayerProps) {
  const [active, setActive] = useState<"all" | "part" | null>(null);
  const [failure, setFailure] = useState("");
  if (axis.wav === null) return null;
  const stretch = part && stretchOf(part.weights);
  const at = (frame: number): number => (frame * axis.seconds) / axis.frames;
  const start = (which: "all" | "part", from: number, to: number): void => {
    setActive(which);
    const done = (): void => setActive((now) => (now === which ? null : now));
    play(axis, from, to, done).catch((error: unknown) => {
      setFailure(`This recording cannot be played: ${String(error)}`);
      done();
    });
  };
  return (
    <div class="player">
      <button data-playing={active === "all"} onClick={() => start("all", 0, axis.seconds)}>
        ▶ Play all
      </button>
      <button
        data-playing={active === "part"}
        disabled={!stretch}
        title="The shortest stretch with 80 % of the weight"
        onClick={() => stretch && start("part", at(stretch[0]), at(stretch[1]))}
      >
        {part && stretch ? (
          <>
            ▶ Play what <bdi>{part.label}</bdi> attends to{" "}
            <span class="faint">
              {at(stretch[0]).toFixed(2)}–{at(stretch[1]).toFixed(2)} s
            </span>
          </>
        ) : (
          "Pin a token to play its part"
        )}
      </button>
      {failure && <span role="alert">{failure}</span>}
    </div>
  );
}
