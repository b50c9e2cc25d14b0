/** A picture, bright where it is attended to. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ImageAxis } from "../data";
import { profile, shades, unitsOn, useFocus, type Focus, type Focusing } from "../focus";
import { FONT, shortened } from "../geometry";
import type { Matrix } from "../matrix";
import type { Side, State } from "../state";
import { visible } from "../units";
import { registerView, type Scene } from "./view";

const MOST_FRAMES = 80;

/** The side that is a picture: the keys, if both are. */
function imageSide(scene: Scene): { side: Side; other: Side; axis: ImageAxis } {
  if (scene.cols.kind === "image") return { side: "key", other: "query", axis: scene.cols };
  return { side: "query", other: "key", axis: scene.rows as ImageAxis };
}

function useImage(axis: ImageAxis): HTMLImageElement | null {
  const [image, setImage] = useState<HTMLImageElement | null>(null);
  useEffect(() => {
    let wanted = true;
    void loadImage(axis).then((loaded) => wanted && setImage(loaded));
    return () => {
      wanted = false;
    };
  }, [axis]);
  return image;
}

async function loadImage(axis: ImageAxis): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = `data:image/png;base64,${axis.png}`;
  await image.decode();
  return image;
}

/** How strongly each patch is attended to, 0 to 1, line by line. */
function patchesOf(matrix: Matrix, state: State, focus: Focus | null, axis: ImageAxis, side: Side): Float32Array {
  const weights = profile(matrix, focus);
  const steps = shades(matrix, weights, focus ? state : { ...state, scale: "row" });
  const units = unitsOn(matrix, side);
  const count = axis.grid[0] * axis.grid[1];
  return Float32Array.from({ length: count }, (_, patch) => {
    const unit = units.of[patch + axis.leading.length] ?? -1;
    return unit < 0 ? 0 : steps[unit]! / 255;
  });
}

interface Shown {
  image: HTMLImageElement;
  axis: ImageAxis;
  patches: Float32Array | null;
  scene: Scene;
  smooth: boolean;
  tinted: boolean;
}

/** Draws the picture at a width, with unattended patches in the shade. */
function paint(canvas: HTMLCanvasElement, width: number, { image, axis, patches, scene, smooth, tinted }: Shown): void {
  const height = (width * image.naturalHeight) / image.naturalWidth;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  const context = canvas.getContext("2d")!;
  context.imageSmoothingQuality = "high";
  if (tinted && patches) context.filter = "grayscale(1)";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  context.filter = "none";
  if (!patches) return;
  const [rows, cols] = axis.grid;
  const veil = document.createElement("canvas");
  veil.width = cols;
  veil.height = rows;
  const inner = veil.getContext("2d")!;
  const pixels = inner.createImageData(cols, rows);
  const numbers = new Uint32Array(pixels.data.buffer);
  patches.forEach((share, place) => {
    const colour = tinted ? scene.colours.pixels[Math.round(share * 255)]! & 0xffffff : 0x140c08;
    const alpha = tinted ? 40 + 190 * share : 215 * (1 - share);
    numbers[place] = colour | (Math.round(alpha) << 24);
  });
  inner.putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = smooth;
  context.drawImage(veil, 0, 0, canvas.width, canvas.height);
}

interface SheetProps extends Shown {
  width: number;
  marked: number | null;
  label: string;
  onPatch?: (patch: number | null) => void;
  onPress?: (patch: number) => void;
}

function Sheet({ width, marked, label, onPatch, onPress, ...shown }: SheetProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { axis, image, scene } = shown;
  useEffect(() => {
    const target = canvas.current!;
    paint(target, width, shown);
    if (marked === null) return;
    const context = target.getContext("2d")!;
    const [high, wide] = [target.height / axis.grid[0], target.width / axis.grid[1]];
    context.strokeStyle = scene.ink.accent;
    context.lineWidth = 2 * devicePixelRatio;
    context.strokeRect((marked % axis.grid[1]) * wide, Math.floor(marked / axis.grid[1]) * high, wide, high);
  });
  const patchAt = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    const col = Math.floor(((event.clientX - box.left) / box.width) * axis.grid[1]);
    const row = Math.floor(((event.clientY - box.top) / box.height) * axis.grid[0]);
    return Math.min(Math.max(row, 0), axis.grid[0] - 1) * axis.grid[1] + Math.min(Math.max(col, 0), axis.grid[1] - 1);
  };
  return (
    <canvas
      ref={canvas}
      class="photo"
      role="img"
      aria-label={label}
      style={{ width: `${width}px`, height: `${(width * image.naturalHeight) / image.naturalWidth}px` }}
      onMouseMove={(event) => onPatch?.(patchAt(event))}
      onMouseLeave={() => onPatch?.(null)}
      onClick={(event) => onPress?.(patchAt(event))}
    />
  );
}

function Overlay(scene: Scene) {
  const { matrix, state, update, width, height } = scene;
  const { side, other, axis } = imageSide(scene);
  const image = useImage(axis);
  const [smooth, setSmooth] = useState(true);
  const [tinted, setTinted] = useState(false);
  const focusing = useFocus(scene);
  // A patch can be in focus only if the picture attends to itself.
  const focus = focusing.focus?.side === other ? focusing.focus : null;
  const patches = useMemo(
    () => patchesOf(matrix, state, focus, axis, side),
    [matrix, state.scale, state.threshold, focus?.unit, axis, side],
  );
  if (!image) return <p class="empty">Unpacking the picture …</p>;
  const itself = scene.map.rows === scene.map.cols;
  const shown = { image, axis, scene, smooth, tinted };
  const ratio = image.naturalHeight / image.naturalWidth;
  const wide = Math.max(Math.min(width * 0.56, (height - 70) / ratio, 900), 80);
  const label = focus ? visible(unitsOn(matrix, other).list[focus.unit]!.label) : "all tokens, on average";
  const read = (patch: number | null): void => {
    if (patch === null) return;
    const unit = unitsOn(matrix, side).of[patch + axis.leading.length] ?? -1;
    const row = focus?.unit ?? 0;
    const opposite = unitsOn(matrix, other).list[row]?.pieces[0];
    if (unit < 0 || opposite === undefined) return;
    const piece = patch + axis.leading.length;
    update({ cursor: side === "key" ? { query: opposite, key: piece } : { query: piece, key: opposite } });
  };
  const pick = (patch: number): void => {
    const unit = unitsOn(matrix, other).of[patch + axis.leading.length] ?? -1;
    if (unit >= 0) focusing.press({ side: other, unit });
  };
  const at = state.cursor ? (side === "key" ? state.cursor.key : state.cursor.query) - axis.leading.length : -1;
  return (
    <div class="frame overlay" tabIndex={0} role="region" aria-label={`Picture of ${scene.map.name}`}>
      <div class="large">
        <h3>
          {side === "key" ? "Attention of " : "Attention to "}
          <bdi>{label}</bdi>
        </h3>
        <Sheet
          {...shown}
          patches={patches}
          width={wide}
          marked={at >= 0 ? at : null}
          label={`The picture, bright where ${label} attends`}
          onPatch={read}
        />
        <div class="options">
          <button role="switch" aria-checked={smooth} onClick={() => setSmooth(!smooth)}>
            Smooth
          </button>
          <button role="switch" aria-checked={tinted} onClick={() => setTinted(!tinted)}>
            Colours
          </button>
        </div>
      </div>
      {itself ? (
        <div class="picker">
          <h3>Click the patch that attends</h3>
          <Sheet
            {...shown}
            patches={null}
            width={Math.max(Math.min(width - wide - 40, 320), 80)}
            marked={focus ? unitsOn(matrix, other).list[focus.unit]!.pieces[0]! - axis.leading.length : null}
            label="The picture; click the patch that attends"
            onPress={pick}
          />
          <Leading scene={scene} focusing={focusing} axis={axis} other={other} />
        </div>
      ) : (
        <Film scene={scene} shown={shown} focusing={focusing} side={side} other={other} />
      )}
    </div>
  );
}

/** Tokens before the patches have no place in the picture. */
function Leading({ scene, focusing, axis, other }: { scene: Scene; focusing: Focusing; axis: ImageAxis; other: Side }) {
  const units = unitsOn(scene.matrix, other);
  return (
    <p class="leading">
      {axis.leading.map((name, piece) => {
        const unit = units.of[piece]!;
        return unit < 0 ? null : (
          <button
            aria-pressed={focusing.focus?.side === other && focusing.focus.unit === unit}
            onClick={() => focusing.press({ side: other, unit })}
          >
            {visible(name)}
          </button>
        );
      })}
    </p>
  );
}

interface FilmProps {
  scene: Scene;
  shown: Omit<Shown, "patches">;
  focusing: Focusing;
  side: Side;
  other: Side;
}

/** One small picture per token. */
function Film({ scene, shown, focusing, side, other }: FilmProps) {
  const { matrix, state } = scene;
  const list = unitsOn(matrix, other).list;
  return (
    <div class="film" onMouseLeave={() => focusing.point(null)}>
      {list.slice(0, MOST_FRAMES).map((unit, place) => {
        const here: Focus = { side: other, unit: place };
        return (
          <button
            key={place}
            aria-pressed={focusing.pinned?.side === other && focusing.pinned.unit === place}
            data-focus={focusing.focus?.side === other && focusing.focus.unit === place}
            onMouseEnter={() => focusing.point(here)}
            onClick={() => focusing.press(here)}
          >
            <Sheet
              {...shown}
              patches={patchesOf(matrix, state, here, shown.axis, side)}
              width={96}
              marked={null}
              label=""
            />
            <bdi>{visible(unit.label)}</bdi>
          </button>
        );
      })}
      {list.length > MOST_FRAMES && <p class="faint">The first {MOST_FRAMES} of {list.length}.</p>}
    </div>
  );
}

async function draw(scene: Scene) {
  const { matrix, state, ink } = scene;
  const { side, other, axis } = imageSide(scene);
  const image = await loadImage(axis);
  const list = unitsOn(matrix, other).list.slice(0, 24);
  const pinned = state.pin?.side === other ? unitsOn(matrix, other).of[state.pin.piece]! : -1;
  const chosen = pinned >= 0 ? [pinned] : list.map((_, place) => place);
  const wide = chosen.length === 1 ? 600 : 200;
  const high = (wide * image.naturalHeight) / image.naturalWidth;
  const columns = Math.min(chosen.length, 6);
  const width = columns * (wide + 12) + 12;
  const height = Math.ceil(chosen.length / columns) * (high + 36) + 12;
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      font-family={FONT}
      font-size={14}
    >
      <rect width={width} height={height} fill={ink.ground} />
      {chosen.map((unit, place) => {
        const canvas = document.createElement("canvas");
        const patches = patchesOf(matrix, state, { side: other, unit }, axis, side);
        paint(canvas, wide, { image, axis, patches, scene, smooth: true, tinted: false });
        const x = 12 + (place % columns) * (wide + 12);
        const y = 12 + Math.floor(place / columns) * (high + 36);
        return (
          <>
            <image href={canvas.toDataURL()} x={x} y={y} width={wide} height={high} />
            <text x={x + wide / 2} y={y + high + 18} text-anchor="middle" fill={ink.text}>
              {shortened(visible(unitsOn(matrix, other).list[unit]!.label), wide, 14)}
            </text>
          </>
        );
      })}
    </svg>
  );
}

registerView({
  name: "image",
  title: "Picture",
  hint: "A picture, bright where it is attended to.",
  accepts: (rows, cols) => rows.kind === "image" || cols.kind === "image",
  reads: true,
  Component: Overlay,
  draw,
});
