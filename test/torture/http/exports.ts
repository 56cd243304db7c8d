/** Hostile exports: each must be refused with a reason or ignored, and the next good file applied. */
import { spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Form } from '../../../src/exports/file-name.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { Appliance } from '../../support/appliance.ts';
import { csv, fileName, ndjson, newRow, nextWindowMs } from '../../support/export-files.ts';

type Msg = 'file applied' | 'file failed' | 'file refused';

interface HostileFile {
  readonly kind: string;
  readonly form: Form;
  readonly content: (prng: Prng) => Buffer;
  /** Its allowed outcomes. */
  readonly outcomes: readonly Msg[];
}

const MIB = 1024 * 1024;
/** Much more than the program may keep of a file in memory. */
const BOMB_MIB = 640;
const MEMORY_GROWTH_MAX_MIB = 400;
/** Lines of 1 KiB: with shorter ones, reading a bomb would take minutes. */
const BLANK_LINE = `${' '.repeat(1023)}\n`;
const FAILS: readonly Msg[] = ['file failed'];
const EITHER: readonly Msg[] = ['file applied', 'file failed'];

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

const FILES: readonly HostileFile[] = [
  { kind: 'gzip bomb of one line', form: 'ndjson.gz', content: bomb(gzipSync, 'x'), outcomes: FAILS },
  {
    kind: 'gzip bomb of blank lines',
    form: 'ndjson.gz',
    content: bomb(gzipSync, BLANK_LINE),
    outcomes: EITHER,
  },
  { kind: 'zstd bomb of one line', form: 'csv.zst', content: bomb(zstdCompressSync, 'x'), outcomes: FAILS },
  {
    kind: 'zstd bomb of blank lines',
    form: 'ndjson.zst',
    content: bomb(zstdCompressSync, BLANK_LINE),
    outcomes: EITHER,
  },
  { kind: 'endless line', form: 'ndjson', content: () => Buffer.alloc(8 * MIB, 'x'), outcomes: FAILS },
  {
    kind: 'endless quote',
    form: 'csv',
    content: () => Buffer.concat([Buffer.from(`${csv([newRow()])}"`), Buffer.alloc(4 * MIB, 'y\n')]),
    outcomes: FAILS,
  },
  { kind: 'deep nesting', form: 'ndjson', content: text('['.repeat(500_000)), outcomes: FAILS },
  {
    kind: 'deep member',
    form: 'ndjson',
    content: rowWith(`"x":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`),
    outcomes: EITHER,
  },
  {
    kind: 'invalid UTF-8',
    form: 'ndjson',
    content: () => Buffer.concat([text('')(), Buffer.from([0x22, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0x22, 0x0a])]),
    outcomes: FAILS,
  },
  {
    kind: 'a member __proto__',
    form: 'ndjson',
    content: rowWith('"__proto__":{"subscription_id":7002}'),
    outcomes: EITHER,
  },
  {
    kind: 'a member constructor',
    form: 'ndjson',
    content: rowWith('"constructor":{"prototype":{"x":1}}'),
    outcomes: EITHER,
  },
  {
    kind: 'integer above 2^53',
    form: 'ndjson',
    content: text(JSON.stringify(newRow()).replace('501', '9007199254740993')),
    outcomes: FAILS,
  },
  {
    kind: 'number without end',
    form: 'ndjson',
    content: text(JSON.stringify(newRow()).replace('61.5', '1e400')),
    outcomes: FAILS,
  },
  {
    kind: 'half of a surrogate pair',
    form: 'ndjson',
    content: rowWith('"article_headline":"\\ud800"'),
    outcomes: FAILS,
  },
  { kind: 'NUL', form: 'ndjson', content: text('\u0000'.repeat(1000)), outcomes: FAILS },
  {
    kind: 'UTF-16',
    form: 'csv',
    content: () => Buffer.from(`\ufeff${csv([newRow()])}`, 'utf16le'),
    outcomes: FAILS,
  },
  {
    kind: 'wide header',
    form: 'csv',
    content: () => Buffer.from(Array.from({ length: 90_000 }, (_, at) => `c${at}`).join(',')),
    outcomes: FAILS,
  },
  {
    kind: 'truncated gzip',
    form: 'ndjson.gz',
    content: () => gzipSync(text('{}')()).subarray(0, -9),
    outcomes: FAILS,
  },
  { kind: 'not gzip', form: 'csv.gz', content: () => Buffer.from(csv([newRow()])), outcomes: FAILS },
  {
    kind: 'flipped gzip',
    form: 'ndjson.gz',
    content: (prng) => flipped(prng, gzipSync(ndjson([newRow()]))),
    outcomes: EITHER,
  },
  {
    kind: 'flipped zstd',
    form: 'csv.zst',
    content: (prng) => flipped(prng, zstdCompressSync(csv([newRow()]))),
    outcomes: EITHER,
  },
  {
    kind: 'flipped text',
    form: 'csv',
    content: (prng) => flipped(prng, Buffer.from(csv([newRow(), newRow()]))),
    outcomes: EITHER,
  },
  {
    kind: 'random bytes',
    form: 'ndjson',
    content: (prng) => flipped(prng, Buffer.from(Array.from({ length: 5000 }, () => prng.below(256)))),
    outcomes: FAILS,
  },
];

const ODD_NAMES: readonly ((number: number) => string)[] = [
  (number) => `odd-${number}.txt`,
  (number) => `newswire.20261101T1010Z.ndjson\n${number}`,
  (number) => `\u001b[31mred ${number}`,
  (number) => `\u202efdp.${number}.ndjson`,
  (number) => `${number}${'ü'.repeat(120)}`,
  (number) => `-rf ${number}`,
  (number) => `$(touch ${number})`,
  (number) => `newswire.backfill-..%2f..%2f${number}.ndjson`,
  (number) => `newswire.20269999T${number}Z.ndjson`,
];

export interface ExportsOutcome {
  /** The number dropped of each kind. */
  readonly figures: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
}

/** Enough files for every kind. */
export const EXPORTS_MIN = FILES.length;

/** @param folder for the targets of links; @param memoryMib returns the program's current memory */
export async function dropHostile(
  appliance: Appliance,
  {
    count,
    prng,
    folder,
    memoryMib,
  }: { count: number; prng: Prng; folder: string; memoryMib: () => Promise<number> },
): Promise<ExportsOutcome> {
  const figures: Record<string, number> = {};
  const failures: string[] = [];
  const note = (kind: string) => {
    figures[kind] = (figures[kind] ?? 0) + 1;
  };
  const before = await memoryMib();
  let highest = before;
  for (let number = 0; number < count; number += 1) {
    const file = FILES[number % FILES.length];
    if (file === undefined) break;
    const name = `${prng.pick(['newswire', 'imagewire'])}.backfill-h${number}.${file.form}`;
    const { msg } = await appliance.dropped(name, file.content(prng));
    if (!file.outcomes.some((end) => end === msg))
      failures.push(`file ${number}, ${file.kind}: ${msg}, not ${file.outcomes.join(' or ')}`);
    note(file.kind);
    if (number % 5 === 0) {
      const oddName = (ODD_NAMES[(number / 5) % ODD_NAMES.length] ?? String)(number);
      appliance.put(oddName, 'x');
      const odd = await appliance.processed(oddName);
      if (odd.msg !== 'file refused') failures.push(`the name ${JSON.stringify(oddName)}: ${odd.msg}`);
      note('odd name');
    }
    highest = Math.max(highest, await memoryMib());
  }
  failures.push(...(await dropSpecialFiles(appliance, folder, note)));
  if (highest - before > MEMORY_GROWTH_MAX_MIB)
    failures.push(`memory rose from ${before} to ${highest} MiB, by more than ${MEMORY_GROWTH_MAX_MIB}`);
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  if (good.msg !== 'file applied')
    failures.push(`a good file after the hostile ones was not applied: ${good.msg}`);
  return { figures: { ...figures, 'MiB of memory at most': Math.round(highest) }, failures };
}

/** Drops links, a FIFO and a folder: they must stay where they are, and nothing may be read or written through them. */
async function dropSpecialFiles(
  appliance: Appliance,
  folder: string,
  note: (kind: string) => void,
): Promise<string[]> {
  const inDrop = () => join(appliance.drop, fileName('newswire', nextWindowMs()));
  const outside = join(folder, 'outside');
  mkdirSync(join(outside, 'empty'), { recursive: true });
  writeFileSync(join(outside, 'secret.ndjson'), ndjson([newRow()]));
  const content = readFileSync(join(outside, 'secret.ndjson'), 'utf8');
  const makers: Readonly<Record<string, (path: string) => void>> = {
    'link to a file': (path) => symlinkSync(join(outside, 'secret.ndjson'), path),
    'link to nothing': (path) => symlinkSync(join(outside, 'nothing'), path),
    'link to a folder': (path) => symlinkSync(join(outside, 'empty'), path),
    'link to itself': (path) => symlinkSync(path, path),
    FIFO: (path) => void spawnSync('mkfifo', [path]),
    folder: (path) => mkdirSync(path),
  };
  const made = Object.entries(makers).map(([kind, make]) => {
    const path = inDrop();
    make(path);
    note(kind);
    return { kind, path, was: lstatSync(path).mode };
  });
  // Once a second good file is applied, all earlier entries have been scanned.
  for (let left = 2; left > 0; left -= 1)
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  const failures: string[] = [];
  for (const { kind, path, was } of made) {
    if (lstatSync(path, { throwIfNoEntry: false })?.mode !== was)
      failures.push(`${kind}: it was moved or changed`);
    rmSync(path, { recursive: true, force: true });
  }
  const isUntouched =
    readFileSync(join(outside, 'secret.ndjson'), 'utf8') === content &&
    `${readdirSync(outside).sort()}` === 'empty,secret.ndjson' &&
    readdirSync(join(outside, 'empty')).length === 0;
  if (!isUntouched) failures.push('files outside of the drop folder were changed');
  return failures;
}
