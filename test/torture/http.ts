/**
 * Hostile input: generated requests, thousands of bad clients, hostile exports. Then searches everything that the
 * program wrote or printed for the installation's secrets.
 */
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Form } from '../../src/exports/file-name.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { csv, fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { isErrorLine } from '../support/installation-state.ts';
import { runProgram } from '../support/program.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { runCampaign } from './http/campaign.ts';
import { runClients } from './http/clients.ts';
import { startTarget, type Target } from './http/target.ts';
import { type Part, type PartOptions, readProcess, shareOf } from './part.ts';

/** Statuses that the requests must cause: otherwise they test too little. */
const STATUSES = [200, 304, 400, 401, 403, 404, 405, 413];

export const http: Part = {
  name: 'http',
  about: 'generated requests, bad clients, hostile exports; searches all output for secrets',
  run: (options) => httpWith(options, { hasShortTimeouts: false }),
};

/** @param hasShortTimeouts whether to shorten the program's idle timeouts, so that a test need not wait */
export async function httpWith(
  options: PartOptions,
  { hasShortTimeouts }: { hasShortTimeouts: boolean },
): Promise<void> {
  const { folder, tally, onProgress } = options;
  const target = await startTarget(hasShortTimeouts);
  const { appliance, secrets } = target;
  const { failures } = tally;
  const readLog = () => {
    for (const line of appliance.serving().takeLog()) {
      tally.count('lines of the log');
      secrets.search(`a line of the log, "${line.msg}"`, JSON.stringify(line));
      if (isErrorLine(line)) failures.push(`logged: ${JSON.stringify(line).slice(0, 500)}`);
    }
  };
  const reading = setInterval(readLog, 1000);
  try {
    await dropHostile(target, options);
    onProgress('the hostile exports are dropped');
    await Promise.all([runClients(target, options), runCampaign(target, options)]);
    await runCommands(target, options);
    for (const status of STATUSES)
      if (tally.figures[`answered ${status}`] === undefined)
        failures.push(`no request was answered ${status}`);
    if ((await appliance.get('/v1/me')).status !== 200) failures.push('the program no longer responds');
    await appliance.serving().stop();
    readLog();
    // Only the installation's secret file may contain its secret, and no file a key or token.
    secrets.searchFolder(appliance.data, ['secret']);
    // So must the backup.
    secrets.searchFolder(folder, ['secret']);
    failures.push(...secrets.found);
    tally.count('secrets planted', secrets.planted);
    tally.count('texts and files searched', secrets.searched);
  } finally {
    clearInterval(reading);
    await appliance.stop();
  }
}

/** Commands that must succeed. */
const RIGHT: readonly (readonly string[])[] = [
  ['status'],
  ['alert', 'list'],
  ['audit'],
  ['key', 'list'],
  ['account', 'show', 'agency'],
  ['ingest', 'status'],
];

/** Runs commands of an operator, and searches their output. */
async function runCommands({ appliance, secrets }: Target, { folder, tally }: PartOptions): Promise<void> {
  const run = async (args: readonly string[]) => {
    tally.count('commands');
    const command = runProgram([...args, '--data', appliance.data], { WIREWATCH_DEBUG: '1' });
    const status = await command.ended;
    const output = `${command.stdout()}\n${command.stderr()}`;
    secrets.search(`the output of wirewatch ${args[0]} ${args[1] ?? ''}`, output);
    return status;
  };
  const backups = join(folder, 'backups');
  for (const args of [
    ...RIGHT.flatMap((right) => [right, [...right, '--json']]),
    ['backup', backups],
    ['verify', backups],
    ['verify'],
  ]) {
    const status = await run(args);
    if (status !== 0) tally.failures.push(`wirewatch ${args.join(' ')} ended with ${status}, not 0`);
  }
  await run(['check']);
}

const MIB = 1024 * 1024;
/** Much more than the program may keep of a file in memory. */
const BOMB_MIB = 640;
const MEMORY_GROWTH_MAX_MIB = 400;
/** Lines of 1 KiB: with shorter ones, reading a bomb would take minutes. */
const BLANK_LINE = `${' '.repeat(1023)}\n`;

/** Compressed members or frames of 1 MiB each. */
const bomb =
  (pack: (bytes: Buffer) => Buffer, filling: string): (() => Buffer) =>
  () =>
    Buffer.concat(Array(BOMB_MIB).fill(pack(Buffer.alloc(MIB, filling))));

function flipped(prng: Prng, bytes: Buffer): Buffer {
  for (let left = 1 + prng.below(5); left > 0; left -= 1) bytes[prng.below(bytes.length)] = prng.below(256);
  return bytes;
}

/** The content of each kind of file, and its form. */
type Kinds = Readonly<Record<string, readonly [form: Form, content: (prng: Prng) => Buffer]>>;

const FAILING: Kinds = {
  'gzip bomb of one line': ['ndjson.gz', bomb(gzipSync, 'x')],
  'zstd bomb of one line': ['csv.zst', bomb(zstdCompressSync, 'x')],
  'random bytes': [
    'ndjson',
    (prng) => flipped(prng, Buffer.from(Array.from({ length: 5000 }, () => prng.below(256)))),
  ],
};

/** These may also be applied. */
const DOUBTFUL: Kinds = {
  'gzip bomb of blank lines': ['ndjson.gz', bomb(gzipSync, BLANK_LINE)],
  'zstd bomb of blank lines': ['ndjson.zst', bomb(zstdCompressSync, BLANK_LINE)],
  'flipped gzip': ['ndjson.gz', (prng) => flipped(prng, gzipSync(ndjson([newRow()])))],
  'flipped zstd': ['csv.zst', (prng) => flipped(prng, zstdCompressSync(csv([newRow()])))],
  'flipped text': ['csv', (prng) => flipped(prng, Buffer.from(csv([newRow(), newRow()])))],
};

const FILES = Object.entries({ ...FAILING, ...DOUBTFUL });
const EXPORTS = 2000;

/** Drops hostile exports: each must fail with a reason, and the next good file be applied. Names and links: test/drop. */
async function dropHostile({ appliance, admin }: Target, options: PartOptions): Promise<void> {
  const { tally } = options;
  const { failures } = tally;
  const prng = seededPrng(options.seed, 'exports');
  // At least one of every kind.
  const count = shareOf(options, EXPORTS, FILES.length);
  const memoryMib = async () => (await readProcess(admin)).memoryMib;
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
