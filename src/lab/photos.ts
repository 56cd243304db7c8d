/** Sample photos: small pictures (PNG, https://www.w3.org/TR/png-3/); the colour depends on the item. */
import { crc32, deflateSync } from 'node:zlib';

const WIDTH = 160;
const HEIGHT = 120;
const COLOURS = 24;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Eight bits per channel, RGB, no interlacing. */
const HEADER_END = [8, 2, 0, 0, 0];

const made = new Map<number, Buffer>();

/** @param id of the item; equal ids give equal photos */
export function samplePhoto(id: number): Buffer {
  const colour = id % COLOURS;
  let photo = made.get(colour);
  if (photo === undefined) {
    photo = Buffer.concat([
      SIGNATURE,
      chunk('IHDR', header()),
      chunk('IDAT', deflateSync(pixels(colour), { level: 9 })),
      chunk('IEND', Buffer.alloc(0)),
    ]);
    made.set(colour, photo);
  }
  return photo;
}

function header(): Buffer {
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(WIDTH, 0);
  sizes.writeUInt32BE(HEIGHT, 4);
  return Buffer.concat([sizes, Buffer.from(HEADER_END)]);
}

/** A sky that fades into a horizon; each line begins with its filter: none. */
function pixels(colour: number): Buffer {
  const lines: number[] = [];
  for (let y = 0; y < HEIGHT; y += 1) {
    const light = y < (HEIGHT * 2) / 3 ? 0.45 + y / (HEIGHT * 2) : 0.3;
    const pixel = [0, 1, 2].map((part) =>
      Math.round(255 * light * (0.65 + 0.35 * Math.cos((2 * Math.PI * (colour / COLOURS + part / 3)) % 7))),
    );
    lines.push(0);
    for (let x = 0; x < WIDTH; x += 1) lines.push(...pixel);
  }
  return Buffer.from(lines);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
