/** Sample photos: small PNG files, each of a sky above a horizon, in two colours. https://www.w3.org/TR/png-3/ */
import { crc32, deflateSync } from 'node:zlib';

const WIDTH = 160;
const HEIGHT = 120;
const COLOURS = 24;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** One bit a pixel, of a palette; no interlacing. */
const HEADER = Buffer.concat([uint32(WIDTH, HEIGHT), Buffer.from([1, 3, 0, 0, 0])]);
/** Each line begins with its filter: none. */
const LINES = Array.from({ length: HEIGHT }, (_, y) =>
  Buffer.concat([Buffer.of(0), Buffer.alloc(WIDTH / 8, y < (HEIGHT * 2) / 3 ? 0 : 0xff)]),
);

/** @param id of the item; equal ids give equal photos */
export function samplePhoto(id: number): Buffer {
  const turn = (id % COLOURS) / COLOURS;
  const sky = [0, 1, 2].map((part) => 166 + 89 * Math.cos(2 * Math.PI * (turn + part / 3)));
  const palette = [...sky, ...sky.map((light) => light / 2)].map(Math.round);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', HEADER),
    chunk('PLTE', Buffer.from(palette)),
    chunk('IDAT', deflateSync(Buffer.concat(LINES))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
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
