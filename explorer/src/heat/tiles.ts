/** A heat map in tiles, which are made when they come into sight: a map may have a thousand million cells. */

import type { Colours } from "../colour";
import type { Matrix } from "../matrix";
import { part, type Display } from "../picture";
import type { Layout } from "./layout";

const SIDE = 512; // pixels of a tile
const MOST_KEPT = 48;

export class Tiles {
  private readonly kept = new Map<string, HTMLCanvasElement>();
  /** Pixels of a tile for each cell: one, or fewer if the screen has fewer. */
  private readonly across: number;
  private readonly down: number;

  constructor(
    private readonly matrix: Matrix,
    private readonly display: Display,
    private readonly colours: Colours,
    private readonly layout: Layout,
    private readonly density: number,
  ) {
    this.across = Math.min(layout.wide * density, 1);
    this.down = Math.min(layout.high * density, 1);
  }

  /** Draws what stands in a window of the map; its upper left corner is at (0, 0) of the context. */
  draw(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
    const { wide, high } = this.layout;
    const total = [this.pixels(this.matrix.cols.list.length, this.across), this.pixels(this.matrix.rows.list.length, this.down)];
    // A pixel of a tile is this large on the screen.
    const [stepX, stepY] = [wide / this.across, high / this.down];
    const lastX = Math.min(Math.ceil((x + width) / stepX / SIDE), Math.ceil(total[0]! / SIDE));
    const lastY = Math.min(Math.ceil((y + height) / stepY / SIDE), Math.ceil(total[1]! / SIDE));
    // Edges on whole pixels of the screen leave no seams.
    const whole = (value: number): number => Math.round(value * this.density) / this.density;
    for (let j = Math.max(Math.floor(y / stepY / SIDE), 0); j < lastY; j++) {
      for (let i = Math.max(Math.floor(x / stepX / SIDE), 0); i < lastX; i++) {
        const tile = this.tile(i, j, Math.min(SIDE, total[0]! - i * SIDE), Math.min(SIDE, total[1]! - j * SIDE));
        const [left, top] = [whole(i * SIDE * stepX - x), whole(j * SIDE * stepY - y)];
        const right = whole((i * SIDE + tile.width) * stepX - x);
        const bottom = whole((j * SIDE + tile.height) * stepY - y);
        context.drawImage(tile, left, top, right - left, bottom - top);
      }
    }
  }

  private pixels(cells: number, each: number): number {
    return each === 1 ? cells : Math.max(Math.floor((cells - 1) * each) + 1, 1);
  }

  private tile(i: number, j: number, width: number, height: number): HTMLCanvasElement {
    const key = `${i} ${j}`;
    const known = this.kept.get(key);
    const tile =
      known ??
      part(this.matrix, this.display, this.colours, [this.across, this.down], [i * SIDE, j * SIDE, width, height]);
    this.kept.delete(key);
    this.kept.set(key, tile); // the newest is the last
    if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value!);
    return tile;
  }
}
