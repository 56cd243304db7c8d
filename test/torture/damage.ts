/**
 * Damages logs, databases and copies: flipped bits, overwritten pages, truncated files, lost, duplicated and swapped
 * segments. Damaged data must be refused or repaired, never served.
 * The targets below say what must happen to each.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { addAccount } from '../../src/auth/accounts.ts';
import { addKey, revokeKey } from '../../src/auth/keys.ts';
import { openAccess } from '../../src/auth/open-access.ts';
import { scrub } from '../../src/log/scrub.ts';
import { describeFindings } from '../../src/log/scrub-findings.ts';
import { Refused } from '../../src/refused.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { noteDamage } from '../../src/store/folder.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { USUAL_TERMS } from '../support/access.ts';
import { copyTo, restoreFrom } from '../support/copy-at.ts';
import {
  assertSameContent,
  type Content,
  contentOfDatabase,
  contentOfDetections,
  reading,
} from '../support/database-content.ts';
import { createCopied, type History, QUIETLY } from '../support/history.ts';
import { newRows, recordFile } from '../support/scrub.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { readStream, STREAMS } from '../support/streams.ts';
import { filesBelow } from '../support/test-folder.ts';
import { DAMAGE_KINDS, type DamageKind, damaged, type Files, isSame } from './damage/damage-files.ts';
import type { Part, PartOptions } from './part.ts';

export const damage: Part = { name: 'damage', about: 'damages logs, databases and copies 10,000 times', run };

/** Of each target. */
const TIMES = 1430;

type Result = 'refused' | 'as it was' | 'told';

interface Target {
  readonly name: string;
  readonly kinds?: readonly DamageKind[];
  paths(kind: DamageKind): readonly string[];
  /** @throws Error if the outcome is not allowed */
  check(time: number): Promise<Result>;
}

/** The undamaged files and their content. */
type Scene = Awaited<ReturnType<typeof prepare>>;

async function run({ seed, share, folder, tally, onProgress }: PartOptions): Promise<void> {
  const prng = seededPrng(seed, 'damage');
  const scene = await prepare(folder);
  const times = Math.ceil(TIMES * share);
  try {
    for (const target of targetsOf(scene)) {
      const { name, kinds = DAMAGE_KINDS } = target;
      for (let time = 0; time < times; time += 1) {
        const kind = kinds[time % kinds.length] ?? 'bit';
        const result = await damageOnce(scene, target, { kind, prng, time }).catch((error: unknown) => {
          const what = `seed ${seed}, ${name}, ${kind}, number ${time}`;
          tally.failures.push(`${what}: ${String(error).slice(0, 300)}`);
          return 'WRONG';
        });
        tally.count(`${name}, ${kind}`);
        tally.count(`${name}: ${result}`);
      }
      onProgress(`${name}: ${times} times`);
    }
  } finally {
    scene.history.delete();
  }
}

async function damageOnce(
  { files, roots }: Scene,
  target: Target,
  { kind, prng, time }: { kind: DamageKind; prng: Prng; time: number },
): Promise<Result> {
  let changed: Files = files;
  // Some damage changes nothing: a page replaced by an equal one, a segment swapped with itself.
  while (isSame(files, changed)) changed = damaged(files, kind, { prng, paths: target.paths(kind) });
  writeFiles(roots, changed);
  try {
    return await target.check(time);
  } finally {
    writeFiles(roots, files);
  }
}

/** Makes the folders contain exactly these files. */
function writeFiles(folders: readonly string[], files: Files): void {
  for (const folder of folders) rmSync(folder, { recursive: true });
  for (const folder of new Set([...files.keys()].map(dirname)))
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [path, bytes] of files) writeFileSync(path, bytes);
}

/** Runs work that may be refused; a refusal must change no file. @returns whether it was refused */
async function refuses(paths: readonly string[], work: () => unknown): Promise<boolean> {
  const before = readAll(paths);
  try {
    await work();
    return false;
  } catch (error) {
    if (!(error instanceof Refused) && !(error instanceof LogDamage)) throw error;
    const { message } = error;
    if (!isSame(before, readAll(paths))) throw new Error(`it was refused, but changed files: ${message}`);
    return true;
  }
}

const readAll = (folders: readonly string[]): Files =>
  new Map(folders.flatMap(filesBelow).map((path) => [path, readFileSync(path)]));

function targetsOf(scene: Scene): Target[] {
  const { history, content, copy, files } = scene;
  const { folder } = history;
  const within = (path: string) => () =>
    [...files.keys()].filter((each) => each.startsWith(`${path}/`)).sort();
  const segments = within(folder.log);
  const asItWas = () => assertSameContent(contentOfDetections(folder.root), content);
  /** It is refused, or the content is unchanged. */
  const start = async (): Promise<Result> => {
    if (await refuses([folder.log], () => history.restart())) return 'refused';
    history.stop();
    asItWas();
    return 'as it was';
  };
  const scrubbed = () => scrub({ folder, ...QUIETLY });
  return [
    { name: 'log beside its database', paths: segments, check: start },
    {
      name: 'log without a database',
      // Without a database, a missing end of the newest segment cannot be detected.
      paths: () => segments().slice(0, -1),
      async check() {
        rmSync(folder.detections);
        return start();
      },
    },
    {
      name: 'log, compared',
      paths: segments,
      async check() {
        const { findings } = await scrubbed();
        if (findings.some(({ kind }) => kind === 'log damaged')) return 'told';
        // A scrub ignores the log after the database's last entry, which may still be written: the next start checks
        // it.
        return start();
      },
    },
    {
      name: 'detections.db',
      kinds: ['bit', 'block', 'page', 'torn end', 'lost'],
      paths: () => [folder.detections],
      async check(time) {
        // What was reported, a start repairs.
        const { findings } = await scrubbed();
        if (findings.length === 0) asItWas();
        if (findings.length === 0 || time % 20 !== 0) return findings.length === 0 ? 'as it was' : 'told';
        noteDamage(folder, describeFindings(findings));
        return start();
      },
    },
    {
      name: 'change stream',
      kinds: ['bit', 'block'],
      paths: () => [folder.detections],
      async check() {
        const read = streamsIn(folder.detections);
        if (read !== null && read !== scene.stream) throw new Error('a client reads another stream');
        return read === null ? 'refused' : 'as it was';
      },
    },
    {
      name: 'access.db and its spare copy',
      kinds: ['bit', 'block', 'page', 'torn end', 'lost', 'doubled'],
      paths: () => [folder.access, folder.spare],
      check: async () => startOfAccess(scene),
    },
    {
      name: 'copy',
      paths(kind) {
        const all = within(copy)();
        // Nothing else in a copy says that its newest part existed.
        const newest = all.findLast((path) => path.startsWith(`${copy}/log/`));
        return kind === 'lost' ? all.filter((path) => path !== newest) : all;
      },
      check: () => restored(scene),
    },
  ];
}

/** What clients read of all streams at once, and of each; null: it is refused. */
function streamsIn(path: string): string | null {
  const each = STREAMS.map((stream) => [stream]);
  try {
    return reading(path, (db) => [STREAMS, ...each].map((streams) => readStream(db, { streams })).join());
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

/** Opens access.db as a start does. */
async function startOfAccess({ history, access }: Scene): Promise<Result> {
  const { root } = history.folder;
  const open = () => openAccess(root, { operation: { kind: 'test' }, onRecovered: () => {} }).close();
  if (await refuses([root], open)) return 'refused';
  assertSameContent(contentOfAccess(history), access);
  return 'as it was';
}

async function restored({ history, copy, content, access }: Scene): Promise<Result> {
  const data = join(dirname(copy), 'restored');
  try {
    if (await refuses([copy], () => restoreFrom(copy, data))) return 'refused';
    assertSameContent(beforeEpoch(contentOfDetections(data)), beforeEpoch(content));
    // If the end of a log may be lost, a restore ends the console's sessions.
    const changed = ['console', 'audit', 'change'];
    assertSameContent(without(contentOfAccess(history, data), changed), without(access, changed));
    return 'as it was';
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** All versions from before the restore, which announces the newest ones again, and the ids of all detections. */
function beforeEpoch(content: Content): Content {
  const { stream_row = [], detection = [] } = content;
  return {
    ...without(content, ['version_epoch', 'log_mark', 'delivery', 'stream', 'rescored']),
    stream_row: stream_row.filter((row) => Number(Object(row).version) < 1000),
    detection: detection.map((row) => ({ id: Object(row).id })),
  };
}

const without = (content: Content, tables: readonly string[]): Content =>
  Object.fromEntries(Object.entries(content).filter(([table]) => !tables.includes(table)));

const contentOfAccess = ({ folder }: History, root = folder.root): Content =>
  without(reading(join(root, 'access.db'), contentOfDatabase), ['log_mark']);

async function prepare(work: string) {
  const history = await createCopied();
  const { folder } = history;
  history.apply(newRows(1, 300), { with: recordFile });
  makeAccess(folder.root);
  const copy = join(work, 'copy');
  await copyTo(copy, folder.root);
  history.apply(newRows(1, 60, { strength_score: 90, last_scored_at: '2026-11-20T09:05:00Z' }));
  history.apply(newRows(50, 60, { last_scored_at: '2026-11-20T09:06:00Z' }));
  await copyTo(copy, folder.root);
  for (let from = 1000; from < 1300; from += 50) history.apply(newRows(from, 50));
  history.stop();
  await copyTo(copy, folder.root);
  const roots = [folder.root, copy];
  return {
    history,
    content: contentOfDetections(folder.root),
    access: contentOfAccess(history),
    /** As clients read it. */
    stream: streamsIn(folder.detections),
    copy,
    roots,
    /** All of the data folder and the copy. */
    files: readAll(roots),
  };
}

/** Accounts, and a revoked key, which must stay revoked. */
function makeAccess(root: string): void {
  const db = openAccess(root, { operation: { kind: 'test' } });
  for (let number = 0; number < 20; number += 1)
    addAccount(db, { id: `account-${number}`, name: `Account ${number}`, daily_rows: null }, 1000);
  const proof = { id: 'abcdefghij23', prefix: 'ww', hash: Buffer.alloc(32, 7) };
  addKey(db, { ...USUAL_TERMS, ...proof, account_id: 'account-0' }, 1000);
  revokeKey(db, 'abcdefghij23', 2000);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}
