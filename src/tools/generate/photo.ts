/** Sample photos: small PNG files, each of a sky above a horizon. https://www.w3.org/TR/png-3/ */
import { crc32, deflateSync } from 'node:zlib';

const WIDTH = 160;
const HEIGHT = 120;
const COLOURS = 24;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** Eight bits per channel, RGB, no interlacing. */
const HEADER = Buffer.concat([uint32(WIDTH, HEIGHT), Buffer.from([8, 2, 0, 0, 0])]);

const made = new Map<number, Buffer>();

/** @param id of the item; equal ids give equal photos */
export function samplePhoto(id: number): Buffer {
  const colour = id % COLOURS;
  const parts = () => [
    SIGNATURE,
    chunk('IHDR', HEADER),
    chunk('IDAT', deflateSync(pixels(colour))),
    chunk('IEND', Buffer.alloc(0)),
  ];
  const photo = made.get(colour) ?? Buffer.concat(parts());
  made.set(colour, photo);
  return photo;
}

/** Lines of one colour each; each begins with its filter: none. */
function pixels(colour: number): Buffer {
  const lines = Array.from({ length: HEIGHT }, (_, y) => {
    const light = y < (HEIGHT * 2) / 3 ? 0.45 + y / (HEIGHT * 2) : 0.3;
    const pixel = [0, 1, 2].map((part) =>
      Math.round(255 * light * (0.65 + 0.35 * Math.cos((2 * Math.PI * (colour / COLOURS + part / 3)) % 7))),
    );
    return Buffer.concat([Buffer.of(0), Buffer.alloc(WIDTH * 3, Buffer.from(pixel))]);
  });
  return Buffer.concat(lines);
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
