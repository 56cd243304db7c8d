/**
 * Hostile input: generated requests, thousands of bad clients, hostile exports. Then searches everything that the
 * program wrote or printed for the installation's secrets.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Form } from '../../src/exports/file-name.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { csv, fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { runCampaign } from './http/campaign.ts';
import { runClients } from './http/clients.ts';
import { startTarget, type Target } from './http/target.ts';
import { type Outcome, type Part, type PartOptions, readProcess, shareOf, Tally } from './part.ts';

/** Statuses that the requests must cause: otherwise they test too little. */
const STATUSES = [200, 304, 400, 401, 403, 404, 405, 413, 431];

export const http: Part = {
  name: 'http',
  about: 'generated requests, bad clients, hostile exports; searches all output for secrets',
  minutes: 25,
  run: (options) => httpWith(options, { hasShortTimeouts: false }),
};

/** @param hasShortTimeouts whether to shorten the program's idle timeouts, so that a test need not wait */
export async function httpWith(
  options: PartOptions,
  { hasShortTimeouts }: { hasShortTimeouts: boolean },
): Promise<Outcome> {
  const { folder, onProgress } = options;
  const target = await startTarget(hasShortTimeouts);
  const { appliance, secrets } = target;
  const tally = new Tally();
  const { failures } = tally;
  const readLog = () => {
    for (const line of appliance.serving().takeLog()) {
      tally.count('lines of the log');
      secrets.search(`a line of the log, "${line.msg}"`, JSON.stringify(line));
      if (line.level === 'fatal' || (line.level === 'error' && line.msg !== 'file failed'))
        failures.push(`logged: ${JSON.stringify(line).slice(0, 500)}`);
    }
  };
  const reading = setInterval(readLog, 1000);
  try {
    await dropHostile(target, options, tally);
    onProgress('the hostile exports are dropped');
    await Promise.all([runClients(target, options, tally), runCampaign(target, options, tally)]);
    await runCommands(target, folder, tally);
    for (const status of STATUSES)
      if (tally.figures[`answered ${status}`] === undefined)
        failures.push(`no request was answered ${status}`);
    if ((await appliance.get('/v1/me')).status !== 200) failures.push('the program no longer responds');
    await appliance.serving().stop();
    readLog();
    // Only the installation's secret file may contain its secret, and no file a key or token.
    secrets.searchFolder(appliance.data, ['secret']);
    // An input file of the commands, and the backup, which must contain the installation's secret.
    secrets.searchFolder(folder, ['secret', 'not-a-key']);
    failures.push(...secrets.found);
    tally.count('secrets planted', secrets.planted);
    tally.count('texts and files searched', secrets.searched);
    return tally;
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

/** Runs valid and invalid commands of an operator, and searches their output. @param folder for backups and input files */
async function runCommands(target: Target, folder: string, tally: Tally): Promise<void> {
  const { appliance, secrets, key } = target;
  const run = async (args: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
    tally.count('commands');
    const command = runProgram([...args, '--data', appliance.data], { WIREWATCH_DEBUG: '1', ...settings });
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
  const { commandsWithSecrets, address, password } = wrongCommands(target, folder);
  for (const args of commandsWithSecrets) await run(args);
  await run(['check'], { WIREWATCH_SERVER_BASE_URL: address, WIREWATCH_ADMIN_HOST: password });
  await run(['status'], { WIREWATCH_KEYS_PREFIX: key });
}

/** Commands with a secret in the wrong place. @param folder for their input files */
function wrongCommands({ facts, key }: Target, folder: string) {
  const [foreign = ''] = facts.misplaced;
  const [password = ''] = facts.misplaced.slice(-1);
  const keyFile = join(folder, 'not-a-key');
  writeFileSync(keyFile, foreign);
  const config = join(folder, 'wrong.toml');
  writeFileSync(
    config,
    `[[keys]]\nid = "abcdefghij23"\nsecret_file = ${JSON.stringify(keyFile)}\naccount = "agency"\n`,
  );
  const address = `https://agency:${foreign}@127.0.0.1:1/`;
  const commandsWithSecrets: readonly (readonly string[])[] = [
    ['key', 'show', key],
    ['key', 'revoke', key, '--yes'],
    ['key', 'rotate', key],
    ['key', 'set', key, '--name', 'x'],
    ['account', 'show', key],
    ['key', 'create', '--account', key, '--name', 'x', '--scopes', key, '--subscriptions', key],
    ['pull', '--base-url', address, '--key-file', keyFile, '--into', join(folder, 'copy')],
    ['pull', '--base-url', `http://${facts.host}`, '--key-file', keyFile, '--into', join(folder, 'copy')],
    ['serve', '--base-url', address],
    ['serve', '--config', config],
    ['check', '--config', config],
    [key],
    [`--${key}`],
  ];
  return { commandsWithSecrets, address, password };
}

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
const EXPORTS = 2000;

/** Drops hostile exports: each must fail with a reason, and the next good file be applied. Names and links: test/drop. */
async function dropHostile({ appliance, admin }: Target, options: PartOptions, tally: Tally): Promise<void> {
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
