/**
 * Restores a backup into an empty data folder, or in place of the contents of one.
 *
 * The new state is built in the data folder, complete and verified, before anything is moved. Then one rename makes it
 * the effective one; store/complete-restore.ts describes what a crash leaves.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { applyEnded, type Ended, readEnded } from '../auth/denials.ts';
import { openAccess } from '../auth/open-access.ts';
import { removedSince } from '../auth/removal.ts';
import { type FoundCopy, findAccess, findCopy } from '../auth/spare-copy.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { type Epoch, streamWriter } from '../ingest/apply/stream-writer.ts';
import { orphanedFiles } from '../ingest/files/orphaned.ts';
import { REMOVE } from '../log/compact.ts';
import { recoverDetections } from '../log/recover.ts';
import { findTail } from '../log/torn-end.ts';
import { monthBeforeEnd } from '../log/version-epoch.ts';
import { failed, isErrorCode, Refused, reasonOf } from '../refused.ts';
import { closeDetections } from '../store/checkpoint.ts';
import { completeRestore, incomingPath, pendingRestore, RESTORED_NAMES } from '../store/complete-restore.ts';
import { type Database, openContent, openDatabase } from '../store/database.ts';
import { isDiskFull } from '../store/database-errors.ts';
import {
  type DataFolder,
  dataFolder,
  ensureFolder,
  syncFile,
  syncFolder,
  writeWhole,
} from '../store/folder.ts';
import { takeStopped } from '../store/locks.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import { setWaitsForCopy, waitsForCopy } from '../store/log-mark.ts';
import { noteKept, noteRole, noteStandby, RESTORE, readRole, soundRole } from '../store/role.ts';
import { formatCompact, formatMs, type Now } from '../time.ts';
import type { OnProgress } from './copy-contents.ts';
import { cutLog, Given, replacedHistory } from './discarded.ts';
import type { Place } from './place.ts';
import { loadCopy } from './source.ts';

export interface RestoreOptions {
  /** With a copy. */
  readonly source: Place;
  readonly data: string;
  /** Whether an existing installation is moved aside. */
  readonly replace: boolean;
  /** Whether the machine becomes a standby of the source: then nothing is changed in what is restored. */
  readonly standby?: boolean;
  /** Restores the state at this time, epoch milliseconds; null: the newest. */
  readonly untilMs: number | null;
  /** The drop folder, whose archive may contain newer files. */
  readonly drop: Parameters<typeof orphanedFiles>[1];
  readonly now: Now;
  readonly onProgress: OnProgress;
}

export type Restored = Exclude<Awaited<ReturnType<typeof restore>>, { earlier: string | null }>;

/**
 * @returns what is in place: the log of the copy, the database that was built from it, and the later `access.db` of both;
 *   `replaced`: the folder with the previous contents, null if there were none; `gone`: detections that clients may have, and
 *   that no longer exist, with a file of their ids, one a line, null if there are none; `superseded`: who took the place of this
 *   machine before, in words, null: nobody. Or `earlier`, the same folder of an
 *   earlier restore that had been interrupted: it is complete now, and nothing else was done
 * @throws Refused `failed`, with nothing changed, if the backup is damaged or cannot be restored into the folder
 */
export async function restore(options: RestoreOptions) {
  const { now, source, standby = false, untilMs } = options;
  const folder = dataFolder(options.data);
  const { root } = folder;
  if (standby && untilMs !== null)
    throw failed(
      'with [copy] standby, a machine follows the copy to its newest entry. To go back in time, set [copy] standby = false on this machine, stop the others, and run the command again.',
    );
  ensureFolder(folder);
  using held = new DisposableStack();
  held.defer(takeStopped(folder));
  try {
    // An interrupted restore is completed first.
    const earlier = completeRestore(folder);
    if (earlier !== undefined) return { earlier };
    const there = RESTORED_NAMES.filter((name) => existsSync(join(root, name))).sort();
    if (there.length > 0 && !options.replace)
      throw failed(
        `${root} already contains an installation (${there.join(', ')}). To restore the backup there, add --replace: the existing files are moved aside, not deleted. Or name another folder with --data.`,
      );
    const stage = dataFolder(join(root, '.incoming'));
    const removeStage = () => rmSync(stage.root, { recursive: true, force: true });
    // If a killed restore left it, it is incomplete.
    removeStage();
    held.defer(removeStage);
    mkdirSync(stage.root, { mode: 0o700 });
    const { goneIds, ...made } = await makeNewState(options, stage, folder).catch((error) => {
      throw refusedFor(error, source.text, stage);
    });
    const former = soundRole(folder);
    if (standby) noteStandby(stage, { standby: true });
    else {
      const own = readRole(stage);
      // What this machine wrote before is not of another one; an epoch that it owes is still to begin.
      const epoch_due = made.raised ? null : (former?.epoch_due ?? null);
      noteRole(stage, { ...own, machine: former?.machine ?? own.machine, epoch_due });
    }
    syncFolder(stage.root);
    const gone = { count: goneIds.length, file: join(root, `gone-${formatCompact(now())}.txt`) };
    if (gone.count > 0) writeWhole(gone.file, goneIds.map((id) => `${id}\n`).join(''));
    // From here on the new state is the effective one, whatever happens.
    renameSync(stage.root, incomingPath(folder, now()));
    syncFolder(root);
    const replaced = completeRestore(folder) ?? null;
    const superseded = former?.superseded ?? null;
    return { ...made, source: source.text, replaced, superseded, gone: gone.count > 0 ? gone : null };
  } catch (error) {
    throw explained(error, folder);
  }
}

/** The text of an error that says why the backup cannot be restored, with its name. */
function refusedFor(error: unknown, source: string, stage: DataFolder): unknown {
  const damage = error instanceof Refused && error.cause instanceof LogDamage ? error.cause : error;
  if (!(damage instanceof LogDamage || damage instanceof Refused)) return error;
  // The path is in a copy, but the backup is meant.
  const what = damage.message.replaceAll(`${stage.root}/`, '');
  return failed(`${source} cannot be restored: ${what}. Nothing was changed.`, { cause: error });
}

function explained(error: unknown, folder: DataFolder): unknown {
  const isOfDisk = error instanceof LogFailure || isErrorCode(error, 'EACCES', 'EPERM', 'EROFS', 'EIO');
  if (!isDiskFull(error) && !isOfDisk) return error;
  const state =
    pendingRestore(folder) === null
      ? 'Nothing was changed.'
      : 'The restored state is already in place: the next start completes the restore, or run the same command again.';
  const check = `Check the disk of ${folder.root}, its free space, and the permissions`;
  return failed(`${reasonOf(error)}. ${state} ${check}.`, { cause: error });
}

const ACCESS_COUNTS = `
  SELECT (SELECT count(*) FROM account) AS accounts, (SELECT count(*) FROM api_key) AS keys,
    (SELECT max(at) FROM audit) AS state_ms`;

const SELECT_STREAMS_REMOVED = `
  SELECT subscription_id AS id, max(removed) AS removals FROM (
    SELECT subscription_id, sum(removed) AS removed, min(removed) AS is_removed FROM stream
    GROUP BY subscription_id, content_type)
  GROUP BY subscription_id HAVING min(is_removed) = 0`;

const SELECT_ENDED = `
  SELECT 'key' AS kind, id, revoked_at AS at FROM api_key WHERE revoked_at IS NOT NULL
  UNION ALL SELECT 'account', id, suspended_at FROM account WHERE suspended_at IS NOT NULL`;

/**
 * Builds the new state in a folder of its own.
 *
 * The database is built here, and not at the next start, because only that proves that the log can be applied: until
 * then the old state is not touched. It also shows which positions and versions were given out.
 * @param live the folder that is restored into: its access.db may be later, and its
 *   log says what clients have seen
 * @returns `entries_cut`: entries that were cut off; `raised`: whether versions were raised and positions moved ahead, because
 *   the end of the log is or may be lost; and what {@link makeAccess} and {@link makeDetections} do
 * @throws Refused `failed`, LogDamage: the text follows the name of the backup
 */
async function makeNewState(options: RestoreOptions, stage: DataFolder, live: DataFolder) {
  const { source, standby = false, untilMs, onProgress } = options;
  const copy = await loadCopy(source, stage, onProgress);
  mkdirSync(stage.copied, { mode: 0o700 });
  // The log goes on from there.
  if (untilMs === null) noteKept(stage, { copy, to: source.text }, [findTail(stage.log).last]);
  const given = new Given();
  const cut = untilMs === null ? null : cutLog(stage.log, untilMs, given);
  const { removed, ...access } = makeAccess(stage, live, standby);
  // Of those that were cut off, access.db may know nothing.
  for (const id of cut?.removed ?? []) removed.set(id, Number.POSITIVE_INFINITY);
  onProgress('comparing the logs', 0, 0);
  const { isSame, parted } = replacedHistory(live, stage, given, copy);
  const raised = !standby && (cut !== null || !isSame);
  const lost = raised ? { parted, isLater: access.access === 'continued', removed } : null;
  const made = await makeDetections(options, stage, given, lost);
  return { ...made, ...access, entries_cut: cut?.entries ?? 0, raised };
}

/**
 * Puts the later of both states of `access.db` in place: that of the data folder, if it is of the same installation and
 * sound. No restore revives a key that was revoked in either, or an account that was suspended in one of two equally late
 * ones; or what was ended in the data folder while it could not be written. A standby takes that of its source: the writer
 * decides.
 * @returns `access_state_of`: the newest change in it, null if there is none; `ended_here`: for a standby, keys and accounts,
 *   as `key ID`, that were revoked or suspended only in the data folder; `removed`: as {@link removedSince}, since
 *   the copy was written
 */
function makeAccess(stage: DataFolder, live: DataFolder, isStandby: boolean) {
  const found = findAccess(live);
  const own = findCopy(stage.access);
  const isSame =
    found.kind === 'sound' && own.kind === 'sound' && found.state.installation === own.state.installation;
  const ahead = isSame ? found.state.change - own.state.change : -1;
  const isContinued = isSame && !isStandby && ahead >= 0;
  const [kept, other] = isContinued ? [found, own] : [own, found];
  const known = new Set(endedIn(kept).map(nameOf));
  // A revocation is final; a suspension counts where neither state is later.
  const ended = endedIn(other).filter(({ kind }) => isStandby || ahead === 0 || kind === 'key');
  const added = [...ended, ...readEnded(live)].filter((one) => !known.has(nameOf(one)));
  if (isContinued) writeWhole(stage.access, found.content);
  using db = isStandby
    ? openDatabase(stage.access, 'inspect')
    : openAccess(stage.root, { operation: { kind: 'restore' } });
  const counts = db.prepare<[], { accounts: number; keys: number; state_ms: number | null }>(ACCESS_COUNTS);
  const { accounts = 0, keys = 0, state_ms = null } = counts.get() ?? {};
  if (!isStandby) {
    applyEnded(db, added);
    db.pragma('wal_checkpoint(TRUNCATE)');
    syncFile(stage.access);
  }
  using before = isContinued ? openContent(own.content) : null;
  const removed = before === null ? new Map<number, number>() : removedSince(before, db);
  return {
    access: isContinued ? ('continued' as const) : ('from the backup' as const),
    access_state_of: state_ms === null ? null : formatMs(state_ms),
    accounts,
    ended_here: isStandby ? [...new Set(added.map(nameOf))] : [],
    keys,
    removed,
  };
}

const nameOf = ({ kind, id }: Ended) => `${kind} ${id}`;

/** What is revoked and suspended in a state, where that can be read. */
function endedIn(found: FoundCopy): Ended[] {
  if (found.kind !== 'sound') return [];
  using db = openContent(found.content);
  return db.prepare<[], Ended>(SELECT_ENDED).all();
}

/**
 * How the end of the log was lost: `parted` as of {@link replacedHistory}; `isLater`: whether access.db is that of the data
 * folder; `removed`: subscriptions that were removed after the end of access.db in the copy, with how often they ever were.
 */
type LostEnd = { parted: number | null; isLater: boolean; removed: ReadonlyMap<number, number> };

/**
 * @param lost null: it was not
 * @returns `state_of`: when the last entry of the copy was written, null if it has none; `orphans`: files in the archive
 *   without a record; `goneIds`: of detections that no longer exist
 */
async function makeDetections(
  { drop, standby, untilMs, now, onProgress }: RestoreOptions,
  stage: DataFolder,
  given: Given,
  lost: LostEnd | null,
) {
  const state_of = findTail(stage.log).last?.at ?? null;
  const { db, log } = await recoverDetections({
    folder: stage,
    onProgress: (done, total) => onProgress('building detections.db', done, total),
    between: async () => {},
  });
  try {
    if (lost !== null) {
      const writer = streamWriter({ db, log, folder: stage.log, now, onDelivered: () => {} });
      const reason =
        untilMs === null
          ? `restored from a log that ended at ${state_of}`
          : `restored to the state of ${formatMs(untilMs)}`;
      const epoch: Epoch = {
        reason,
        orphans: untilMs === null ? 'to read' : 'left',
        position: given.position,
        number: given.epoch,
        undone: given.undone,
        parted: Math.min(lost.parted ?? monthBeforeEnd(db), given.announced_after),
      };
      writer.commit(writer.begin(new Set(), epoch), { kind: RESTORE, host: hostname(), reason }, () => {
        // Its copy may be another one, or none.
        if (waitsForCopy(db)) setWaitsForCopy(db, false);
      });
      for (const subscription of endedSince(db, stage, lost)) {
        const applier = writer.begin();
        applier.removeSubscription(subscription);
        writer.commit(applier, { kind: REMOVE, subscription });
      }
    }
    const orphans = lost !== null || standby === true ? orphanedFiles(db, drop) : [];
    const exists = db.prepare('SELECT 1 FROM detection WHERE id = ?');
    const goneIds = [...given.undone].filter((id) => exists.get(id) === undefined).sort();
    const detections = db.prepare<[], number>('SELECT count(*) FROM detection').pluck().get() ?? 0;
    return { state_of, detections, orphans, goneIds };
  } finally {
    log.close();
    closeDetections(db);
    syncFile(stage.detections);
  }
}

/**
 * Subscriptions of the log whose rows must not come back, not even to a new owner of the number. A copy has the log before
 * access.db: where it has as many removals as there were, its rows are of the present owner.
 */
function endedSince(db: Database, stage: DataFolder, { removed, isLater }: LostEnd): number[] {
  using access = openDatabase(stage.access, 'inspect');
  const known = new Set(listSubscriptions(access).map(({ id }) => id));
  const there = db.prepare<[], { id: number; removals: number }>(SELECT_STREAMS_REMOVED).all();
  return there
    .filter(({ id, removals }) => (removed.get(id) ?? 0) > removals || (isLater && !known.has(id)))
    .map(({ id }) => id);
}
