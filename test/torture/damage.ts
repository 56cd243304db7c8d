/**
 * Flipped bits, torn ends, lost, doubled and swapped segments, overwritten pages, in the logs, the databases and the
 * backup: what cannot be trusted is refused or repaired, never served.
 *
 * | damaged | required outcome |
 * |---|---|
 * | the log, beside its database | a start is refused and changes nothing, or has all as it was |
 * | the log, from which the database is made | the same |
 * | the log, compared | the scrub tells it; what lies behind the last entry, the next start |
 * | `detections.db` | the scrub tells it, or all is as it was; a start makes good what is noted |
 * | the change stream of a database | no client is served a row less, more, or in another place |
 * | `access.db` and its log | a start is refused, or all is as it was |
 * | a backup | it is not restored, or what was in it is |
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { addAccount } from '../../src/auth/accounts.ts';
import { addKey, revokeKey } from '../../src/auth/keys.ts';
import { restore } from '../../src/backup/restore.ts';
import { writeBackup } from '../../src/backup/write-backup.ts';
import type { Prng } from '../../src/generate/prng.ts';
import { LogDamage } from '../../src/history/log-error.ts';
import { openAccess } from '../../src/history/open-access.ts';
import { scrub } from '../../src/history/scrub.ts';
import { describeFindings } from '../../src/history/scrub-findings.ts';
import { Refused } from '../../src/refused.ts';
import { noteDamage } from '../../src/store/damage-note.ts';
import { openDatabase } from '../../src/store/database.ts';
import { noteIdentity } from '../../src/store/file-identity.ts';
import { damageRandomly } from '../support/damage.ts';
import {
  assertSameContent,
  type Content,
  contentOfDatabase,
  contentOfDetections,
} from '../support/database-content.ts';
import { createHistory, type History } from '../support/history.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { type Files, isSame, SPOILS, type Spoil, spoiled } from './damage/spoil.ts';
import type { Order, Outcome, Part } from './part.ts';

export const damage: Part = {
  name: 'damage',
  about: 'damages logs, databases and backups 10,000 times',
  minutes: 20,
  needs: [],
  run,
};

type Came = 'refused' | 'as it was' | 'told';

interface Target {
  readonly name: string;
  readonly times: number;
  readonly spoils: readonly Spoil[];
  /** What is damaged, of all files that there are. */
  paths(): readonly string[];
  /** @throws what must not be; @returns what came of it */
  check(time: number): Promise<Came>;
}

/** All that is damaged, as it is while nothing is. */
interface Scene {
  readonly history: History;
  readonly content: Content;
  readonly access: Content;
  readonly backup: string;
  /** The data folder, and the backup. */
  readonly files: Files;
}

async function run({ seed, share, folder, tell }: Order): Promise<Outcome> {
  const prng = seededPrng(seed, 'damage');
  const scene = await makeScene(folder);
  const figures: Record<string, number> = {};
  const failures: string[] = [];
  try {
    for (const target of targetsOf(scene)) {
      const times = Math.ceil(target.times * share);
      for (let time = 0; time < times; time += 1) {
        const spoil = target.spoils[time % target.spoils.length] ?? 'bit';
        const came = await damageOnce(scene, target, { spoil, prng, time }).catch((error: unknown) => {
          failures.push(
            `seed ${seed}, ${target.name}, ${spoil}, number ${time}: ${String(error).slice(0, 300)}`,
          );
          return 'WRONG';
        });
        count(figures, `${target.name}, ${spoil}`);
        count(figures, `${target.name}: ${came}`);
      }
      tell(`${target.name}: ${times} times`);
    }
    damageStreams(seed, share, figures, failures);
  } finally {
    scene.history.delete();
  }
  return { figures, failures };
}

function count(figures: Record<string, number>, name: string, by = 1): void {
  figures[name] = (figures[name] ?? 0) + by;
}

async function damageOnce(
  { files }: Scene,
  target: Target,
  { spoil, prng, time }: { spoil: Spoil; prng: Prng; time: number },
): Promise<Came> {
  let changed: Files = files;
  // Some damage comes to nothing: one page in the place of an equal one, a segment changed for itself.
  while (isSame(files, changed)) changed = spoiled(files, spoil, { prng, paths: target.paths() });
  lay(files, changed);
  try {
    return await target.check(time);
  } finally {
    lay(files, files);
  }
}

/** Makes the folders hold these files and no others. @param sound those that are there while nothing is damaged */
function lay(sound: Files, files: Files): void {
  const folders = new Set([...sound.keys()].map(dirname));
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true });
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (!files.has(path) && !folders.has(path) && !isAbove(path, folders))
        rmSync(path, { recursive: true });
    }
  }
  for (const [path, bytes] of files)
    if (!existsSync(path) || !readFileSync(path).equals(bytes)) writeFileSync(path, bytes);
}

function isAbove(path: string, folders: ReadonlySet<string>): boolean {
  return [...folders].some((folder) => folder.startsWith(`${path}/`));
}

/** Runs what may refuse; then nothing may be changed. @returns whether it did */
async function refuses(paths: readonly string[], work: () => unknown): Promise<boolean> {
  const before = readAll(paths);
  try {
    await work();
    return false;
  } catch (error) {
    if (!(error instanceof Refused) && !(error instanceof LogDamage)) throw error;
    if (!isSame(before, readAll(paths)))
      throw new Error(`it refused, and changed something: ${error.message}`);
    return true;
  }
}

function readAll(folders: readonly string[]): Files {
  return new Map(
    folders.flatMap((folder) =>
      existsSync(folder)
        ? readdirSync(folder, { recursive: true, withFileTypes: true })
            .filter((entry) => entry.isFile())
            .map(
              ({ parentPath, name }) =>
                [join(parentPath, name), readFileSync(join(parentPath, name))] as const,
            )
        : [],
    ),
  );
}

function targetsOf(scene: Scene): Target[] {
  const { history, content, backup, files } = scene;
  const { folder } = history;
  const within = (path: string) => () =>
    [...files.keys()].filter((each) => each.startsWith(`${path}/`)).sort();
  const segments = within(folder.log);
  const asItWas = () => assertSameContent(contentOfDetections(folder.root), content);
  const start = async (): Promise<Came> => {
    if (await refuses([folder.log], () => history.restart())) return 'refused';
    history.stop();
    asItWas();
    return 'as it was';
  };
  const scrubbed = () => scrub({ folder, between: async () => {}, onProgress: () => {} });
  return [
    { name: 'log beside its database', times: 1500, spoils: SPOILS, paths: segments, check: start },
    {
      name: 'log without a database',
      times: 1500,
      spoils: SPOILS,
      // Of the newest, nothing but a database could tell that its end is missing.
      paths: () => segments().slice(0, -1),
      async check() {
        rmSync(folder.detections);
        return start();
      },
    },
    {
      name: 'log, compared',
      times: 1500,
      spoils: SPOILS,
      paths: segments,
      async check() {
        const { findings } = await scrubbed();
        if (findings.some(({ kind }) => kind === 'log damaged')) return 'told';
        // Behind the last entry of the database somebody may be writing: that is for the next start to judge.
        return start();
      },
    },
    {
      name: 'detections.db',
      times: 1500,
      spoils: ['bit', 'block', 'page', 'torn end', 'lost'],
      paths: () => [folder.detections],
      async check(time) {
        const { findings } = await scrubbed();
        if (findings.length === 0) asItWas();
        if (findings.length === 0 || time % 20 !== 0) return findings.length === 0 ? 'as it was' : 'told';
        noteDamage(folder, describeFindings(findings));
        noteIdentity(folder.detections);
        return start();
      },
    },
    {
      name: 'access.db and its log',
      times: 1000,
      spoils: ['bit', 'block', 'page', 'torn end', 'lost', 'doubled'],
      paths: () => [folder.access, ...within(folder.accessLog)()],
      check: async () => startOfAccess(scene),
    },
    { name: 'backup', times: 1000, spoils: SPOILS, paths: within(backup), check: () => restored(scene) },
  ];
}

/** As an appliance opens it at its start. */
async function startOfAccess({ history, access }: Scene): Promise<Came> {
  const { root, accessLog } = history.folder;
  const open = () => openAccess(root, { operation: { kind: 'test' }, compare: true }).close();
  if (await refuses([accessLog], open)) return 'refused';
  assertSameContent(contentOfAccess(history), access);
  return 'as it was';
}

async function restored({ history, backup, content, access }: Scene): Promise<Came> {
  const data = join(dirname(backup), 'restored');
  const options = {
    source: backup,
    data,
    replace: false,
    untilMs: null,
    drop: join(data, 'drop'),
    now: Date.now,
  };
  try {
    if (await refuses([backup], () => restore({ ...options, onProgress: () => {} }))) return 'refused';
    const own = ['version_epoch', 'log_mark'];
    assertSameContent(without(contentOfDetections(data), own), without(content, own));
    // Where the end of a log may be lost, a restore ends the console's sessions.
    assertSameContent(without(contentOfAccess(history, data), ['console']), without(access, ['console']));
    return 'as it was';
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

function without(content: Content, tables: readonly string[]): Content {
  return Object.fromEntries(Object.entries(content).filter(([table]) => !tables.includes(table)));
}

function contentOfAccess({ folder }: History, root = folder.root): Content {
  const db = openDatabase(join(root, 'access.db'), 'read');
  try {
    const { log_mark: _, ...content } = contentOfDatabase(db);
    return content;
  } finally {
    db.close();
  }
}

/** What clients get from a damaged database. */
function damageStreams(
  seed: number,
  share: number,
  figures: Record<string, number>,
  failures: string[],
): void {
  for (const kind of ['bit', 'block'] as const) {
    const outcomes = damageRandomly(kind, Math.ceil(1000 * share), `${seed}`);
    for (const [what, times] of Object.entries(outcomes)) count(figures, `change stream: ${what}`, times);
    if (outcomes['wrong rows'] > 0)
      failures.push(`seed ${seed}, change stream, ${kind}: wrong rows ${outcomes['wrong rows']} times`);
  }
}

async function makeScene(work: string): Promise<Scene> {
  const history = await createHistory();
  const { folder } = history;
  const rows = (from: number, count: number, members = {}) =>
    Array.from({ length: count }, (_, index) => ({
      content_type: index % 3 === 0 ? ('image' as const) : ('text' as const),
      row: {
        subscription_id: 7001 + (index % 2),
        article_id: from + index,
        article_headline: `“ü” ${index}`,
        ...members,
      },
    }));
  history.apply(rows(1, 300), {
    with: (db) =>
      db.exec(`
        INSERT INTO ingest_file (number, name, export, bytes, outcome, taken_at, report)
          VALUES (1, 'newswire.ndjson', 'newswire', 10, 'applied', 1000, '{"rows":3}');
        INSERT INTO export_window (export, window_start, status, since, file)
          VALUES ('newswire', 600000, 'done', 1, 1);`),
  });
  history.apply(rows(1, 60, { strength_score: 90, last_scored_at: '2026-11-20T09:05:00Z' }));
  history.apply(rows(50, 60, { last_scored_at: '2026-11-20T09:06:00Z' }));
  for (let from = 1000; from < 1300; from += 50) history.apply(rows(from, 50));
  history.stop();
  writeFileSync(folder.secret, Buffer.alloc(32, 7));
  makeAccess(folder.root);
  const backup = join(work, 'backup');
  const options = { data: folder.root, drop: '/nowhere', replace: false, keepDays: 1, now: Date.now };
  const { path } = await writeBackup({ ...options, target: backup, onProgress: () => {} });
  return {
    history,
    content: contentOfDetections(folder.root),
    access: contentOfAccess(history),
    backup: path,
    files: readAll([folder.root, path]),
  };
}

/** Accounts, and a key that was revoked: it must stay so. */
function makeAccess(root: string): void {
  const db = openAccess(root, { create: true, operation: { kind: 'test' } });
  for (let number = 0; number < 20; number += 1)
    addAccount(db, { id: `account-${number}`, name: `Account ${number}`, daily_rows: null }, 1000);
  addKey(
    db,
    {
      id: 'abcdefghij23',
      account_id: 'account-0',
      name: 'revoked',
      prefix: 'ww',
      hash: Buffer.alloc(32, 7),
      scopes: ['detections:read'],
      subscriptions: [],
      expires_at: null,
      allow_addresses: [],
      daily_rows: null,
    },
    1000,
  );
  revokeKey(db, 'abcdefghij23', 2000);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}
