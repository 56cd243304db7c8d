/** Hostile exports: each must fail with a reason, and the next good file be applied. Names and links: test/drop. */
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Form } from '../../../src/exports/file-name.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { Appliance } from '../../support/appliance.ts';
import { csv, fileName, ndjson, newRow, nextWindowMs } from '../../support/export-files.ts';
import type { Tally } from '../part.ts';

const MIB = 1024 * 1024;
/** Much more than the program may keep of a file in memory. */
const BOMB_MIB = 640;
const MEMORY_GROWTH_MAX_MIB = 400;
/** Lines of 1 KiB: with shorter ones, reading a bomb would take minutes. */
const BLANK_LINE = `${' '.repeat(1023)}\n`;

function text(line: string): () => Buffer {
  return () => Buffer.from(`${JSON.stringify(newRow())}\n${line}\n`);
}

/** Compressed members or frames of 1 MiB each. */
function bomb(pack: (bytes: Buffer) => Buffer, filling: string): () => Buffer {
  return () => Buffer.concat(Array(BOMB_MIB).fill(pack(Buffer.alloc(MIB, filling))));
}

function flipped(prng: Prng, bytes: Buffer): Buffer {
  for (let left = 1 + prng.below(5); left > 0; left -= 1) bytes[prng.below(bytes.length)] = prng.below(256);
  return bytes;
}

const rowWith = (member: string) => text(JSON.stringify(newRow()).replace('{', `{${member},`));

/** The content of each kind of file, and its form. */
type Kinds = Readonly<Record<string, readonly [form: Form, content: (prng: Prng) => Buffer]>>;

const FAILING: Kinds = {
  'gzip bomb of one line': ['ndjson.gz', bomb(gzipSync, 'x')],
  'zstd bomb of one line': ['csv.zst', bomb(zstdCompressSync, 'x')],
  'endless line': ['ndjson', () => Buffer.alloc(8 * MIB, 'x')],
  'endless quote': [
    'csv',
    () => Buffer.concat([Buffer.from(`${csv([newRow()])}"`), Buffer.alloc(4 * MIB, 'y\n')]),
  ],
  'deep nesting': ['ndjson', text('['.repeat(500_000))],
  'invalid UTF-8': ['ndjson', () => Buffer.concat([text('')(), Buffer.from('22c0afeda080220a', 'hex')])],
  'integer above 2^53': ['ndjson', text(JSON.stringify(newRow()).replace('501', '9007199254740993'))],
  'number without end': ['ndjson', text(JSON.stringify(newRow()).replace('61.5', '1e400'))],
  'half of a surrogate pair': ['ndjson', rowWith('"article_headline":"\\ud800"')],
  NUL: ['ndjson', text('\u0000'.repeat(1000))],
  'UTF-16': ['csv', () => Buffer.from(`\ufeff${csv([newRow()])}`, 'utf16le')],
  'wide header': ['csv', () => Buffer.from(Array.from({ length: 90_000 }, (_, at) => `c${at}`).join(','))],
  'truncated gzip': ['ndjson.gz', () => gzipSync(text('{}')()).subarray(0, -9)],
  'not gzip': ['csv.gz', () => Buffer.from(csv([newRow()]))],
  'random bytes': [
    'ndjson',
    (prng) => flipped(prng, Buffer.from(Array.from({ length: 5000 }, () => prng.below(256)))),
  ],
};

/** These may also be applied. */
const DOUBTFUL: Kinds = {
  'gzip bomb of blank lines': ['ndjson.gz', bomb(gzipSync, BLANK_LINE)],
  'zstd bomb of blank lines': ['ndjson.zst', bomb(zstdCompressSync, BLANK_LINE)],
  'deep member': ['ndjson', rowWith(`"x":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`)],
  'a member __proto__': ['ndjson', rowWith('"__proto__":{"subscription_id":7002}')],
  'a member constructor': ['ndjson', rowWith('"constructor":{"prototype":{"x":1}}')],
  'flipped gzip': ['ndjson.gz', (prng) => flipped(prng, gzipSync(ndjson([newRow()])))],
  'flipped zstd': ['csv.zst', (prng) => flipped(prng, zstdCompressSync(csv([newRow()])))],
  'flipped text': ['csv', (prng) => flipped(prng, Buffer.from(csv([newRow(), newRow()])))],
};

const FILES = Object.entries({ ...FAILING, ...DOUBTFUL });

/** Enough files for every kind. */
export const EXPORTS_MIN = FILES.length;

/** @param memoryMib returns the program's current memory */
export async function dropHostile(
  appliance: Appliance,
  { count, prng, memoryMib }: { count: number; prng: Prng; memoryMib: () => Promise<number> },
  tally: Tally,
): Promise<void> {
  const { failures } = tally;
  const before = await memoryMib();
  let highest = before;
  for (let number = 0; number < count; number += 1) {
    const file = FILES[number % FILES.length];
    if (file === undefined) break;
    const [kind, [form, content]] = file;
    const name = `${prng.pick(['newswire', 'imagewire'])}.backfill-h${number}.${form}`;
    const { msg } = await appliance.dropped(name, content(prng));
    if (msg !== 'file failed' && !(kind in DOUBTFUL && msg === 'file applied'))
      failures.push(`file ${number}, ${kind}: ${msg}`);
    tally.count(kind);
    highest = Math.max(highest, await memoryMib());
  }
  tally.count('MiB of memory at most', Math.round(highest));
  if (highest - before > MEMORY_GROWTH_MAX_MIB)
    failures.push(`memory rose from ${before} to ${highest} MiB, by more than ${MEMORY_GROWTH_MAX_MIB}`);
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  if (good.msg !== 'file applied')
    failures.push(`a good file after the hostile ones was not applied: ${good.msg}`);
}
