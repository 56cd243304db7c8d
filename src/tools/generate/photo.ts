/** Sample photos: small PNG files, each of a sky above the ground in two colours. https://www.w3.org/TR/png-3/ */
import { crc32, deflateSync } from 'node:zlib';

const WIDTH = 160;
const HEIGHT = 120;
const COLOURS = 24;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** One bit for each pixel, an index into the palette; no interlacing. */
const HEADER = Buffer.concat([uint32(WIDTH, HEIGHT), Buffer.from([1, 3, 0, 0, 0])]);
const LINE_BYTES = WIDTH / 8;
/** Each line begins with its filter: none. */
const SKY = Buffer.alloc(1 + LINE_BYTES);
const GROUND = Buffer.alloc(1 + LINE_BYTES, 0xff).fill(0, 0, 1);
const LINES = Array.from({ length: HEIGHT }, (_, y) => (y < (HEIGHT * 2) / 3 ? SKY : GROUND));

/** @param id of the item; equal ids give equal photos */
export function samplePhoto(id: number): Buffer {
  const turn = (2 * Math.PI * (id % COLOURS)) / COLOURS;
  const colour = (light: number) =>
    [0, 1, 2].map((at) => Math.round(255 * light * (0.65 + 0.35 * Math.cos(turn + (2 * Math.PI * at) / 3))));
  const palette = Buffer.from([...colour(0.75), ...colour(0.35)]);
  const picture = [chunk('PLTE', palette), chunk('IDAT', deflateSync(Buffer.concat(LINES)))];
  return Buffer.concat([SIGNATURE, chunk('IHDR', HEADER), ...picture, chunk('IEND', Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  return Buffer.concat([uint32(data.length), body, uint32(crc32(body))]);
}

/** Big endian. */
function uint32(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (const [at, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * at);
  return bytes;
}
