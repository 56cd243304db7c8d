/** The ingest loop: scans the drop folder, processes one file after the other, and serves the requests of operators. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { aheadMs, monotonicMs, now } from '../../clock.ts';
import type { DropFolder, Waiting } from '../../drop/drop-folder.ts';
import { plainError, unlessFileError } from '../../drop/file-errors.ts';
import { waitingWindows } from '../../drop/waiting-names.ts';
import { switchedOff } from '../../exports/file-name.ts';
import type { Recovered } from '../../log/recover.ts';
import type { StreamPosition } from '../../log/version-epoch.ts';
import { isErrorCode, reasonIfRefused } from '../../refused.ts';
import { CHECKPOINT_BYTES, checkpoint, closeDetections, walBytes } from '../../store/checkpoint.ts';
import { dataFolder } from '../../store/folder.ts';
import { formatMs, SECOND_MS } from '../../time.ts';
import { heldBy, newestWindowEnd } from '../../windows/ledger.ts';
import { missingWindowsSearch } from '../../windows/overdue-search.ts';
import { ingestBackfill, resumeBackfills } from '../apply/backfill.ts';
import { lostEnd } from '../apply/lost-end.ts';
import { removalRetries } from '../apply/remove-rows.ts';
import { streamWriter } from '../apply/stream-writer.ts';
import { ingestWindowFile, putAway } from '../apply/window-file.ts';
import { changedFiles } from '../files/changed-files.ts';
import { type FileRecord, processedFile } from '../files/file-record.ts';
import { finishTaken, type Ingest, removeTemporary } from '../files/finished-file.ts';
import { folderScanner } from '../files/folder-scan.ts';
import { moveOrphaned } from '../files/orphaned.ts';
import { retention } from '../files/retention.ts';
import { readPause } from '../operator-pause.ts';
import { exportReader } from '../reading/export-reader.ts';
import { handleRequest } from '../requests/handle-requests.ts';
import { steadyClock } from '../steady-clock.ts';
import { openAccessConnection } from './access-connection.ts';
import type { CopyDecisions } from './decisions.ts';
import type { IngestRequest, IngestSettings, Served, Tell, ToMain } from './ingest-messages.ts';
import { type FullDisk, stuckFiles, waitForRoom } from './retry-pauses.ts';

/** Between two notes on the progress of a request. */
const TELL_EVERY_MS = 500;

/** Thrown to abandon unfinished work when the thread is to end. */
export class Stopping extends Error {}

type Asked = Readonly<{ request: IngestRequest; tell: Tell; resolve: (served: Served) => void }>;

export type IngesterOptions = FullDisk &
  Readonly<{ settings: IngestSettings; send: ToMain; decisions: CopyDecisions }>;

export type Ingester = ReturnType<typeof ingester>;

export function ingester(options: IngesterOptions, drop: DropFolder, { db, log: logWriter }: Recovered) {
  const { settings, send, decisions, stopped, timer, log, setCondition } = options;
  const isServing = settings.mode === 'serve';
  const rescanMs = settings.rescan_seconds * SECOND_MS;
  const folder = dataFolder(settings.data);
  const onDelivered = (first_position: number, delivered_at: number) =>
    send('delivered', { first_position, delivered_at });
  const writer = streamWriter({ db, log: logWriter, folder: folder.log, now, decisions, onDelivered });
  const access = openAccessConnection(folder);
  // By a clock that is behind, files would look too far ahead, and those just read as old as what retention deletes.
  // Only windows prove that it is behind: delivery times stay ahead after a clock that was.
  const filesNow = () => Math.max(now(), newestWindowEnd(db));
  const exports = exportReader(options, access, filesNow);
  const stuck = stuckFiles(options);
  const ingest: Ingest = {
    ...{ drop, writer, now: filesNow, log, setCondition, folder, access, exports, stuck },
    failed_windows: settings.failed_windows,
    between,
    onProcessed: (record) => report(record),
  };
  const scanner = folderScanner(ingest, settings);
  const deleteExpired = retention(ingest, settings.archive_days);
  const changed = changedFiles(ingest, rescanMs);
  const searchMissing = missingWindowsSearch(
    db,
    settings.enabled_exports,
    (work) => writer.write({ kind: 'look for missing windows' }, work),
    (exportName) => waitingWindows(drop, exportName),
  );
  const removals = removalRetries(ingest);
  const lost = lostEnd(ingest);
  const clock = steadyClock(aheadMs, monotonicMs);
  /** The first one is being served. */
  const asked: Asked[] = [];
  const resting: (() => void)[] = [];
  /** After the last checkpoint. */
  let checkpointBytes = 0;

  /**
   * Begins with what a crash, a full disk or permissions left unfinished:
   *
   * | file | action |
   * |---|---|
   * | committed, and still in `.taken` | moved to its folder |
   * | in the archive without a record, after a lost end | moved to `.taken`, and read |
   * | a backfill that is half applied, in `.taken` | the rest is applied |
   * | a backfill that is half applied, and gone | it has failed |
   * | any other in `.taken` | read, like one in the drop folder (drop/waiting-names.ts) |
   */
  async function loop(): Promise<void> {
    while (!stopped.aborted) {
      timer.begin();
      const restingBefore = resting.length;
      await finishTaken(ingest);
      lost.makeUp();
      await stuck.attempt('archive', '', 'archive', () => moveOrphaned(ingest));
      // The file of one may be among those from the archive.
      await resumeBackfills(ingest);
      await serveRequests();
      if (!isServing) {
        await timer.sleep(rescanMs);
        continue;
      }
      const nextScanMs = (await takeFiles('all')) ?? rescanMs;
      if (nextScanMs === 0) continue;
      rest();
      for (const resolve of resting.splice(0, restingBefore)) resolve();
      await timer.sleep(Math.min(nextScanMs, stuck.retryMs(), rescanMs));
    }
  }

  /** Between the transactions of long work, windows and a stop have priority. */
  async function between(): Promise<void> {
    stopped.throwIfAborted();
    checkpointAfter(CHECKPOINT_BYTES);
    await turn();
    if (isServing) await takeFiles('windows');
  }

  /** A stop arrives only when the event loop turns. */
  async function turn(): Promise<void> {
    await nextTurn();
    stopped.throwIfAborted();
  }

  async function serveRequests(): Promise<void> {
    for (let first = asked[0]; first !== undefined; first = asked[0]) {
      const { request, tell, resolve } = first;
      const outcome = await handleRequest(ingest, request, tell).then(
        (answer) => ({ answer }),
        (error) => ({ refused: reasonIfRefused(error) }),
      );
      const window_start = 'window_start' in request ? formatMs(request.window_start) : undefined;
      log('info', 'request served', { request: { ...request, window_start }, outcome });
      // The next scan would do this, too; during a pause there is none.
      if (window_start !== undefined) scanner.reportHeld();
      resolve(outcome);
      if (request.kind === 'remove') removals.noteTried();
      asked.shift();
      stopped.throwIfAborted();
    }
    await removals.run((progress) => {
      for (const { request, tell } of asked) if (request.kind === 'remove') tell(progress);
    });
  }

  /** @returns milliseconds until the next scan: 0 for at once, null when nothing waits */
  async function takeFiles(which: 'all' | 'windows'): Promise<number | null> {
    if (access.use(readPause) !== null) return null;
    if (which === 'all') changed.run();
    const scan = scanner.scan();
    if (scan === null) return null;
    const paths = scan.ready.map(({ path }) => path);
    stuck.keepOnly('dropped', paths);
    let processed = 0;
    for (const waiting of scan.ready) {
      if (which === 'windows' && !(waiting.kind === 'export' && waiting.file.window_start !== null)) continue;
      const { path, name } = waiting;
      if (!(await stuck.attempt('dropped', path, name, () => process(waiting)))) continue;
      processed += 1;
      await turn();
      // A pause begins with the next file, and a request does not wait for the whole folder.
      if (access.use(readPause) !== null || asked.length > 0) break;
    }
    return processed > 0 ? 0 : scan.nextScanMs;
  }

  async function process(waiting: Waiting): Promise<void> {
    try {
      const record = await read(waiting);
      if (record !== null) report(record, waiting);
      setCondition('disk full', null);
    } catch (error) {
      // Its writer removed or replaced it: the next scan finds what is there now.
      if (!isErrorCode(error, 'ENOENT', 'ESTALE', 'ELOOP', 'ENXIO') || drop.isUnchanged(waiting)) throw error;
    }
  }

  async function read(waiting: Waiting): Promise<FileRecord | null> {
    if (waiting.kind !== 'export' || !exports.isEnabled(waiting.file.export)) {
      const reason = waiting.kind === 'refused' ? waiting.reason : switchedOff(waiting.file.export);
      return putAway(ingest, waiting, { outcome: 'refused', report: { reason } });
    }
    // A file before it in the same scan may have failed.
    if (heldBy(db, settings)(waiting.file) !== null) return null;
    const isWindow = waiting.file.window_start !== null;
    return isWindow ? ingestWindowFile(ingest, waiting) : ingestBackfill(ingest, waiting);
  }

  /** Logs and counts a file, once. @param dropped the file as it was read, if it was dropped */
  function report(record: FileRecord, dropped?: Waiting): void {
    if (dropped !== undefined) changed.note(record, dropped.snapshot);
    const { number, name, outcome, destination } = record;
    const { errors: _, error_groups: __, ...more } = record.report;
    const isBad = outcome === 'failed' || outcome === 'refused';
    // A command prints the outcome itself.
    const level = isBad && isServing ? 'warn' : 'info';
    log(level, `file ${outcome}`, { number, file: name, destination, ...more });
    send('processed', processedFile(record));
    checkpointAfter(CHECKPOINT_BYTES);
  }

  /** Work for when no file waits. */
  function rest(): void {
    writer.flush();
    const isSteady = clock.isSteady();
    // A file that waits in a folder that cannot be read is not missing. A folder that has gone since is searched next time.
    const search = () => (scanner.isUsable() ? searchMissing(now(), isSteady) : null);
    const found = unlessFileError(null, search);
    if (found !== null) log('info', 'checked for missing windows', found);
    setCondition('disk full', null);
    checkpointAfter(1);
    if (clock.isProven()) deleteExpired();
  }

  /** @param grownBytes by how much the write-ahead log must have grown: a reader may keep it from being emptied */
  function checkpointAfter(grownBytes: number): void {
    if (walBytes(db) < checkpointBytes + grownBytes) return;
    checkpoint(db);
    checkpointBytes = walBytes(db);
  }

  return {
    endLost(cursor: StreamPosition): void {
      lost.note(cursor);
      timer.wake();
    },
    /** Never resolves if the loop ends before. */
    ask: (request: IngestRequest, tell: Tell): Promise<Served> =>
      new Promise((resolve) => {
        asked.push({ request, tell: spaced(tell), resolve });
        timer.wake();
      }),
    wake: () => timer.wake(),
    rested: (): Promise<void> =>
      new Promise((resolve) => {
        resting.push(resolve);
        timer.wake();
      }),
    /** Works until it is to stop. On a full disk it waits, and begins again as after a crash. @throws Stopping */
    async run(): Promise<void> {
      const isUnwatched = (err: unknown) =>
        log('warn', 'no file events from the drop folder: scanning it instead', { err });
      if (isServing) void drop.watch(() => timer.wake(), isUnwatched);
      while (!stopped.aborted) {
        try {
          decisions.begin(writer);
          writer.flush();
          removeTemporary(ingest);
          await loop();
        } catch (error) {
          await waitForRoom(error, options);
        }
      }
    },
    async close(): Promise<void> {
      await drop.close();
      await exports.close();
      // What waits for the copy could not be decided any more.
      const flush = () => decisions.areAwaited(db) || writer.flush();
      for (const work of [flush, () => closeDetections(db)]) {
        try {
          work();
        } catch (error) {
          log('error', 'cannot write the final notes', { err: plainError(error) });
        }
      }
      logWriter.close();
      access.close();
    },
  };
}

function spaced(tell: Tell): Tell {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = nowMs;
    tell(progress);
  };
}
