/** Palettes that everyone can read: each is ordered by lightness alone. */

import {
  interpolateBlues,
  interpolateCividis,
  interpolateGreys,
  interpolateMagma,
  interpolateViridis,
} from "d3-scale-chromatic";
import { rgb } from "d3-color";
import type { Palette } from "./state";

/** `darkens`: from light to dark. On a light page the weights darken, on a dark one they lighten. */
const SCHEMES: Record<Palette, { at: (t: number) => string; darkens: boolean }> = {
  blues: { at: interpolateBlues, darkens: true },
  viridis: { at: interpolateViridis, darkens: false },
  cividis: { at: interpolateCividis, darkens: false },
  magma: { at: interpolateMagma, darkens: false },
  greys: { at: interpolateGreys, darkens: true },
};

export interface Colours {
  /** 256 steps, RGBA as one little-endian number each. */
  readonly pixels: Uint32Array;
  readonly css: readonly string[];
  /** A legible text colour on each step. */
  readonly ink: readonly string[];
}

const made = new Map<string, Colours>();

/** Zero has the colour of the page, so that unattended places disappear. */
export function coloursOf(palette: Palette, dark: boolean): Colours {
  const key = `${palette} ${dark}`;
  const known = made.get(key);
  if (known) return known;
  const { at, darkens } = SCHEMES[palette];
  const ground = rgb(dark ? "#10141b" : "#ffffff");
  const pixels = new Uint32Array(256);
  const css: string[] = [];
  const ink: string[] = [];
  for (let step = 0; step < 256; step++) {
    const t = step / 255;
    const shown = rgb(at(darkens === dark ? 1 - t : t));
    const fade = Math.max(0, 1 - t / 0.12);
    const mixed = rgb(
      Math.round(shown.r + (ground.r - shown.r) * fade),
      Math.round(shown.g + (ground.g - shown.g) * fade),
      Math.round(shown.b + (ground.b - shown.b) * fade),
    );
    pixels[step] = (255 << 24) | (mixed.b << 16) | (mixed.g << 8) | mixed.r;
    css.push(mixed.formatHex());
    ink.push(luminance(mixed.r, mixed.g, mixed.b) > 0.36 ? "#0b0f16" : "#ffffff");
  }
  const colours = { pixels, css, ink };
  made.set(key, colours);
  return colours;
}

function luminance(r: number, g: number, b: number): number {
  const linear = (value: number): number => (value / 255) ** 2.2;
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
