/**
 * Checks an installation: what a start would examine, without listening, and the alerts of the status document. It can
 * run at any time, while Wirewatch runs or before the first start, and leaves nothing behind.
 */
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { preseed as createMissing } from '../auth/preseed.ts';
import { findCopy, findSpare } from '../auth/spare-copy.ts';
import type { Config } from '../config/load.ts';
import { type Preseed, readSecretFiles } from '../config/preseed.ts';
import { openTried } from '../copy/open-place.ts';
import { counted } from '../counted.ts';
import { listSegments } from '../log/segment.ts';
import { readStatus, type Status } from '../operations/status.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, makeSchema, openContent, openDatabase, requireSchema } from '../store/database.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, dataFolder, refuseLinks, requireUsable } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { readLogMark } from '../store/log-mark.ts';
import { UnknownSchema } from '../store/schema.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, checkSurroundings, type Finding, type Outcome, ok, tried, warn } from './surroundings.ts';

const OTHERS = 0o077;
const FIRST_START = 'does not exist yet: the first start creates it';
const RESTORE = 'Restore a backup: wirewatch restore BACKUP --replace';
const REBUILD =
  'Restart Wirewatch: it makes the database anew from the log. To find all damage, run: wirewatch verify';

/**
 * @param root the data folder, absolute
 * @param configured the configuration, or why it could not be read
 * @param askStatus asks the appliance that runs on the data folder; null if none does, or it cannot be asked yet
 * @returns in the order in which problems are best fixed
 */
export async function checkInstallation(
  root: string,
  configured: Config | string,
  askStatus: () => Promise<Status | null>,
): Promise<Finding[]> {
  const nowMs = Date.now();
  const config = typeof configured === 'string' ? null : configured;
  const folder = dataFolder(root);
  const usable = checkDataFolder(folder);
  const isOpen = usable.status !== 'bad' && existsSync(root);
  using opened = new DisposableStack();
  const detections = isOpen ? openDetections(folder) : null;
  const access = isOpen ? checkAccess(folder) : null;
  const db = detections?.db ? opened.use(detections.db) : null;
  const answer = isOpen ? await askStatus().catch(reasonOf) : null;
  const live = typeof answer === 'string' ? null : answer;
  const isRunning = answer !== null || (isOpen && isLocked(folder.serveLock));
  const readStopped = (own: Config) =>
    readStatus({
      ...{ folder, config: own, live: null, nowMs },
      access: () => opened.use(openContent(access?.content ?? ':memory:')),
      detections: () => db,
    });
  const status = live ?? (isOpen && !isRunning && config !== null ? await readStopped(config) : null);
  const outcomes: readonly (readonly [check: string, Outcome | readonly Outcome[]])[] = [
    ['configuration', checkConfiguration(configured)],
    ['data folder', usable],
    ['detections.db', detections?.outcome ?? []],
    ['access.db', access?.outcome ?? []],
    ['log', isOpen ? checkLog(folder, db) : []],
    ['secret', isOpen ? checkSecret(folder) : []],
    [
      'configured accounts',
      config === null || usable.status === 'bad' || access?.outcome.status === 'bad'
        ? []
        : checkConfigured(config.preseed, access?.content ?? null, nowMs),
    ],
    ['appliance', isOpen ? checkAppliance(folder, answer, isRunning) : []],
    // Some alerts are known only to a running appliance: without one, "none open" would not be certain.
    ['alerts', live?.alerts.length === 0 ? ok('none open') : []],
    ['alert', status === null ? [] : alertsOf(status)],
    ['copy', config === null || config.copy.to === '' ? [] : await checkPlace(config.copy)],
    ...(config === null ? [] : await checkSurroundings(config, nowMs)),
  ];
  return outcomes.flatMap(([check, found]) => [found].flat().map((outcome) => ({ check, ...outcome })));
}

function checkConfiguration(configured: Config | string): Outcome {
  if (typeof configured === 'string')
    return bad(
      configured,
      'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings',
    );
  return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
}

/** Whether this user, and no other, can use it. */
function checkDataFolder(folder: DataFolder): Outcome {
  const { root } = folder;
  const todo =
    'Give the folder and its files to the user that Wirewatch runs as (chown -R), and run this command as that user.';
  return tried(root, todo, () => {
    const found = statSync(root, { throwIfNoEntry: false });
    if (found === undefined) {
      let parent = dirname(root);
      while (!existsSync(parent)) parent = dirname(parent);
      accessSync(parent, constants.W_OK | constants.X_OK);
      return warn(
        `${root} does not exist yet`,
        'The first start or command creates it. If it is not the right folder, name another with --data.',
      );
    }
    requireUsable(folder);
    refuseLinks(folder);
    const detail = `${root}, mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}`;
    if (process.getuid !== undefined && process.getuid() !== found.uid)
      return warn(
        `${detail}, owned by user id ${found.uid}, but this command runs as ${process.getuid()}`,
        'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
      );
    return (found.mode & OTHERS) === 0
      ? ok(detail)
      : warn(
          `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
          `chmod 0700 ${root}`,
        );
  });
}

/** The caller closes the database, which is null if it cannot be used. */
function openDetections({ detections }: DataFolder): { outcome: Outcome; db: Database | null } {
  if (!existsSync(detections)) return { outcome: ok(FIRST_START), db: null };
  let db: Database | null = null;
  try {
    db = openDatabase(detections, 'inspect');
    requireSchema(db, detections, DETECTIONS_SCHEMA);
    return { outcome: ok('can be opened'), db };
  } catch (error) {
    db?.close();
    const found = error instanceof UnknownSchema ? warn : bad;
    return { outcome: found(`${detections}: ${reasonOf(error, detections)}`, REBUILD), db: null };
  }
}

function checkAccess(folder: DataFolder): { outcome: Outcome; content: Buffer | null } {
  const { access, detections } = folder;
  const refused = (detail: string, todo: string) => ({ outcome: bad(detail, todo), content: null });
  try {
    const found = findCopy(access);
    if (found.kind === 'sound') return { outcome: ok('can be opened'), content: found.content };
    if (found.kind === 'missing' && !existsSync(detections))
      return { outcome: ok(FIRST_START), content: null };
    return refused(
      found.kind === 'missing' ? 'missing, although detections.db exists' : `${access}: ${found.reason}`,
      findSpare(folder).kind === 'sound'
        ? 'Restart Wirewatch: the spare copy of access.db takes its place.'
        : RESTORE,
    );
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return refused(error.message, 'Use that version, or name the right data folder with --data.');
  }
}

/** @param db of the log; null if nothing can be read from it */
function checkLog({ log }: DataFolder, db: Database | null): Outcome {
  const segments = listSegments(log);
  if (segments.length > 0) return ok(counted(segments.length, 'segment'));
  return db !== null && readLogMark(db) !== null
    ? bad('missing, although its database exists', RESTORE)
    : ok('does not exist yet: the first change creates it');
}

function checkSecret({ secret, detections }: DataFolder): Outcome {
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  if (!existsSync(secret))
    return existsSync(detections) ? bad('missing, although the databases are in use', todo) : ok(FIRST_START);
  const { length } = readFileSync(secret);
  if (length !== SECRET_BYTES) return bad(`has ${counted(length, 'byte')}, expected ${SECRET_BYTES}`, todo);
  return (statSync(secret).mode & OTHERS) === 0
    ? ok('present, and private to its user')
    : warn('other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${secret}`);
}

/**
 * Whether a start can create the accounts, subscriptions and keys of the configuration: creates them in memory.
 * @param content of access.db; null: it does not exist yet, and the start would create it
 */
function checkConfigured(preseed: Preseed, content: Buffer | null, nowMs: number): Outcome | Outcome[] {
  const { accounts, subscriptions, keys } = preseed;
  if (accounts.length + subscriptions.length + keys.length === 0) return [];
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    using copy = openContent(content ?? ':memory:');
    if (content === null) makeSchema(copy, ACCESS_SCHEMA);
    const { differences } = createMissing(copy, seeds, nowMs);
    const warnings = readable_by_all.map((file) =>
      warn(`every user of this machine can read ${file}`, `chmod o-r ${file}`),
    );
    if (differences.length > 0)
      warnings.push(
        warn(
          `existing entries differ from the configuration, which does not change them: ${differences.join('; ')}`,
          'Update the configuration file; see: wirewatch manual preseeding',
        ),
      );
    return warnings.length > 0 ? warnings : ok('all exist, or the next start creates them');
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return bad(error.message, 'Fix the entry or the file: until then, Wirewatch cannot start.');
  }
}

/** @param answer the status of the appliance; a text: why it does not answer; null: it cannot be asked */
function checkAppliance(folder: DataFolder, answer: Status | string | null, isRunning: boolean): Outcome {
  if (typeof answer === 'string')
    return bad(`running, but it does not answer: ${answer}`, 'Look into its log.');
  if (answer !== null) return ok(answer.url === null ? 'running' : `running, listening on ${answer.url}`);
  if (isRunning) return warn('starting: it cannot be asked yet', 'Run this command again in a moment.');
  return existsSync(folder.detections)
    ? bad(
        'not running: clients get no answers, and only alerts that follow from the databases are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok('not started yet');
}

function alertsOf({ alerts }: Status): Outcome[] {
  return alerts.map(({ name, page_worthy, detail, what_to_do }) =>
    (page_worthy ? bad : warn)(`${name}: ${detail}`, what_to_do),
  );
}

/** Creates, lists, reads and deletes a small object there. */
async function checkPlace(copy: Config['copy']): Promise<Outcome> {
  try {
    await openTried(copy.to, copy);
    return ok(copy.to);
  } catch (error) {
    return bad(
      reasonOf(error, copy.to),
      'Until the place can be written, no copy is kept. See: wirewatch manual backup',
    );
  }
}
