/** The ingest loop: scans the drop folder, processes one file after the other, and serves the requests of operators. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { aheadMs, monotonicMs, now } from '../../clock.ts';
import type { DropFolder, Waiting } from '../../drop/drop-folder.ts';
import { plainError, unlessFileError } from '../../drop/file-errors.ts';
import { waitingWindows } from '../../drop/waiting-names.ts';
import { switchedOff } from '../../exports/file-name.ts';
import type { LogWriter } from '../../log/log-writer.ts';
import type { Recovered } from '../../log/recover.ts';
import { isErrorCode, reasonIfRefused } from '../../refused.ts';
import { CHECKPOINT_BYTES, checkpoint, closeDetections, walBytes } from '../../store/checkpoint.ts';
import { dataFolder } from '../../store/folder.ts';
import { formatMs, SECOND_MS } from '../../time.ts';
import { heldBy, newestWindowEnd } from '../../windows/ledger.ts';
import { missingWindowsSearch } from '../../windows/overdue-search.ts';
import { ingestBackfill, resumeBackfills } from '../apply/backfill.ts';
import { type LostEnd, lostEnd } from '../apply/lost-end.ts';
import { removalRetries } from '../apply/remove-rows.ts';
import { streamWriter } from '../apply/stream-writer.ts';
import { ingestWindowFile, putAway } from '../apply/window-file.ts';
import { type ChangedFiles, changedFiles } from '../files/changed-files.ts';
import { type FileRecord, processedFile } from '../files/file-record.ts';
import { finishTaken, type Ingest, removeTemporary } from '../files/finished-file.ts';
import { type FolderScanner, folderScanner } from '../files/folder-scan.ts';
import { moveOrphaned } from '../files/orphaned.ts';
import { retention } from '../files/retention.ts';
import { readPause } from '../operator-pause.ts';
import { exportReader } from '../reading/export-reader.ts';
import { handleRequest } from '../requests/handle-requests.ts';
import type { IngestRequest } from '../requests/requests.ts';
import { steadyClock } from '../steady-clock.ts';
import { openAccessConnection } from './access-connection.ts';
import type { CopyDecisions } from './decisions.ts';
import type { IngestSettings, Served, ToMain } from './ingest-messages.ts';
import { type FullDisk, stuckFiles, waitForRoom } from './retry-pauses.ts';

/** Between two notes on the progress of a request. */
const TELL_EVERY_MS = 500;

/** Thrown to abandon unfinished work when the thread is to end. */
export class Stopping extends Error {}

interface Asked {
  readonly request: IngestRequest;
  readonly tell: (progress: string) => void;
  readonly resolve: (served: Served) => void;
}

export interface IngesterOptions extends FullDisk {
  readonly settings: IngestSettings;
  readonly send: ToMain;
  readonly decisions: CopyDecisions;
}

export class Ingester {
  readonly lostEnd: LostEnd;
  readonly #options: IngesterOptions;
  readonly #logWriter: LogWriter;
  readonly #ingest: Ingest;
  readonly #scanner: FolderScanner;
  readonly #deleteExpired: () => void;
  readonly #changed: ChangedFiles;
  readonly #searchMissing: ReturnType<typeof missingWindowsSearch>;
  readonly #removals: ReturnType<typeof removalRetries>;
  readonly #clock = steadyClock(aheadMs, monotonicMs);
  /** The first one is being served. */
  readonly #asked: Asked[] = [];
  readonly #resting: (() => void)[] = [];
  /** After the last checkpoint. */
  #walBytes = 0;

  constructor(options: IngesterOptions, drop: DropFolder, { db, log: logWriter }: Recovered) {
    this.#options = options;
    this.#logWriter = logWriter;
    const { settings, send, decisions, stopped, timer, log, setCondition } = options;
    const { failed_windows } = settings;
    const folder = dataFolder(settings.data);
    const writer = streamWriter({
      db,
      log: logWriter,
      folder: folder.log,
      now,
      decisions,
      onDelivered: (first_position, delivered_at) => send('delivered', { first_position, delivered_at }),
    });
    const access = openAccessConnection(folder);
    // By a clock that is behind, files would look too far ahead, and those just read as old as what retention deletes.
    // Only windows prove that it is behind: delivery times stay ahead after a clock that was.
    const filesNow = () => Math.max(now(), newestWindowEnd(db));
    const exports = exportReader({
      access,
      settings,
      stopped,
      now: filesNow,
      onProgress: (file, rows, isDone) => send('progress', { file, rows, isDone }),
    });
    const ingest: Ingest = {
      ...{ drop, writer, now: filesNow, log, setCondition, folder, access, exports, failed_windows },
      stuck: stuckFiles({ log, setCondition }),
      between: this.#between,
      onProcessed: (record) => this.#report(record),
    };
    this.#ingest = ingest;
    this.#scanner = folderScanner(ingest, settings);
    this.#deleteExpired = retention(ingest, settings.archive_days);
    this.#changed = changedFiles(ingest, settings.rescan_seconds * SECOND_MS);
    this.#searchMissing = missingWindowsSearch(
      db,
      settings.enabled_exports,
      (work) => writer.write({ kind: 'look for missing windows' }, work),
      (exportName) => waitingWindows(drop, exportName),
    );
    this.#removals = removalRetries(ingest);
    this.lostEnd = lostEnd({ writer, now, log, setCondition, onNoted: () => timer.wake() });
  }

  /** Never resolves if the loop ends before. */
  ask(request: IngestRequest, tell: (progress: string) => void): Promise<Served> {
    return new Promise((resolve) => {
      this.#asked.push({ request, tell: spaced(tell), resolve });
      this.wake();
    });
  }

  wake(): void {
    this.#options.timer.wake();
  }

  /** Resolves when everything of this moment is processed. */
  rested(): Promise<void> {
    return new Promise((resolve) => {
      this.#resting.push(resolve);
      this.wake();
    });
  }

  /** Works until it is to stop. On a full disk it waits, and begins again as after a crash. @throws Stopping */
  async run(): Promise<void> {
    const { drop, writer, log } = this.#ingest;
    const { settings, stopped } = this.#options;
    if (settings.mode === 'serve')
      void drop.watch(
        () => this.wake(),
        (err) => log('warn', 'no file events from the drop folder: scanning it instead', { err }),
      );
    while (!stopped.aborted) {
      try {
        this.#options.decisions.begin(writer);
        writer.flush();
        removeTemporary(this.#ingest);
        await this.#loop();
      } catch (error) {
        await waitForRoom(error, this.#options);
      }
    }
  }

  async close(): Promise<void> {
    const { drop, writer, exports, access, log } = this.#ingest;
    await drop.close();
    await exports.close();
    // What waits for the copy could not be decided any more.
    const flush = () => this.#options.decisions.areAwaited(writer.db) || writer.flush();
    for (const work of [flush, () => closeDetections(writer.db)]) {
      try {
        work();
      } catch (error) {
        log('error', 'cannot write the final notes', { err: plainError(error) });
      }
    }
    this.#logWriter.close();
    access.close();
  }

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
  async #loop(): Promise<void> {
    const { settings, timer, stopped } = this.#options;
    const ingest = this.#ingest;
    const rescanMs = settings.rescan_seconds * SECOND_MS;
    while (!stopped.aborted) {
      timer.begin();
      const resting = this.#resting.length;
      await finishTaken(ingest);
      this.lostEnd.makeUp();
      await ingest.stuck.attempt('archive', '', 'archive', () => moveOrphaned(ingest));
      // The file of one may be among those from the archive.
      await resumeBackfills(ingest);
      await this.#serveRequests();
      if (settings.mode === 'alone') {
        await timer.sleep(rescanMs);
        continue;
      }
      const nextScanMs = (await this.#takeFiles('all')) ?? rescanMs;
      if (nextScanMs === 0) continue;
      this.#rest();
      for (const resolve of this.#resting.splice(0, resting)) resolve();
      await timer.sleep(Math.min(nextScanMs, ingest.stuck.retryMs(), rescanMs));
    }
  }

  /** Between the transactions of long work, windows and a stop have priority. */
  readonly #between = async (): Promise<void> => {
    this.#options.stopped.throwIfAborted();
    this.#checkpoint(CHECKPOINT_BYTES);
    await this.#turn();
    if (this.#options.settings.mode === 'serve') await this.#takeFiles('windows');
  };

  /** A stop arrives only when the event loop turns. */
  async #turn(): Promise<void> {
    await nextTurn();
    this.#options.stopped.throwIfAborted();
  }

  async #serveRequests(): Promise<void> {
    const { log } = this.#ingest;
    for (let asked = this.#asked[0]; asked !== undefined; asked = this.#asked[0]) {
      const { request, tell, resolve } = asked;
      const outcome = await handleRequest(this.#ingest, request, tell).then(
        (answer) => ({ answer }),
        (error) => ({ refused: reasonIfRefused(error) }),
      );
      const window_start = 'window_start' in request ? formatMs(request.window_start) : undefined;
      log('info', 'request served', { request: { ...request, window_start }, outcome });
      // The next scan would do this, too; during a pause there is none.
      if (window_start !== undefined) this.#scanner.reportHeld();
      resolve(outcome);
      if (request.kind === 'remove') this.#removals.noteTried();
      this.#asked.shift();
      this.#options.stopped.throwIfAborted();
    }
    await this.#removals.run((progress) => {
      for (const asked of this.#asked) if (asked.request.kind === 'remove') asked.tell(progress);
    });
  }

  /** @returns milliseconds until the next scan: 0 for at once, null when nothing waits */
  async #takeFiles(which: 'all' | 'windows'): Promise<number | null> {
    const { access, stuck } = this.#ingest;
    if (access.use(readPause) !== null) return null;
    if (which === 'all') this.#changed.run();
    const scan = this.#scanner.scan();
    if (scan === null) return null;
    const paths = scan.ready.map(({ path }) => path);
    stuck.keepOnly('dropped', paths);
    let processed = 0;
    for (const waiting of scan.ready) {
      if (which === 'windows' && !(waiting.kind === 'export' && waiting.file.window_start !== null)) continue;
      const { path, name } = waiting;
      if (!(await stuck.attempt('dropped', path, name, () => this.#process(waiting)))) continue;
      processed += 1;
      await this.#turn();
      // A pause begins with the next file, and a request does not wait for the whole folder.
      if (access.use(readPause) !== null || this.#asked.length > 0) break;
    }
    return processed > 0 ? 0 : scan.nextScanMs;
  }

  async #process(waiting: Waiting): Promise<void> {
    const { drop, setCondition } = this.#ingest;
    try {
      const record = await this.#read(waiting);
      if (record !== null) this.#report(record, waiting);
      setCondition('disk full', null);
    } catch (error) {
      // Its writer removed or replaced it: the next scan finds what is there now.
      if (!isErrorCode(error, 'ENOENT', 'ESTALE', 'ELOOP', 'ENXIO') || drop.isUnchanged(waiting)) throw error;
    }
  }

  async #read(waiting: Waiting): Promise<FileRecord | null> {
    const ingest = this.#ingest;
    if (waiting.kind !== 'export' || !ingest.exports.isEnabled(waiting.file)) {
      const reason = waiting.kind === 'refused' ? waiting.reason : switchedOff(waiting.file.export);
      return putAway(ingest, waiting, { outcome: 'refused', report: { reason } });
    }
    const { file } = waiting;
    // A file before it in the same scan may have failed.
    if (heldBy(ingest.writer.db, this.#options.settings)(file) !== null) return null;
    return file.window_start !== null
      ? ingestWindowFile(ingest, { ...waiting, file })
      : ingestBackfill(ingest, { ...waiting, file });
  }

  /** Logs and counts a file, once. @param read the file as it was read, if it was dropped */
  #report(record: FileRecord, read?: Waiting): void {
    const { settings, send, log } = this.#options;
    if (read !== undefined) this.#changed.note(record, read.snapshot);
    const { number, name, outcome, destination } = record;
    const { errors: _, error_groups: __, ...report } = record.report;
    const isBad = outcome === 'failed' || outcome === 'refused';
    // A command prints the outcome itself.
    const level = isBad && settings.mode === 'serve' ? 'warn' : 'info';
    log(level, `file ${outcome}`, { number, file: name, destination, ...report });
    send('processed', processedFile(record));
    this.#checkpoint(CHECKPOINT_BYTES);
  }

  /** Work for when no file waits. */
  #rest(): void {
    const { writer, log, setCondition } = this.#ingest;
    writer.flush();
    const isSteady = this.#clock.isSteady();
    // A file that waits in a folder that cannot be read is not missing. A folder that has gone since is searched next time.
    const search = () => (this.#scanner.isUsable() ? this.#searchMissing(now(), isSteady) : null);
    const found = unlessFileError(null, search);
    if (found !== null) log('info', 'checked for missing windows', found);
    setCondition('disk full', null);
    this.#checkpoint(1);
    if (this.#clock.isProven()) this.#deleteExpired();
  }

  /** @param grownBytes by how much the write-ahead log must have grown: a reader may keep it from being emptied */
  #checkpoint(grownBytes: number): void {
    const { db } = this.#ingest.writer;
    if (walBytes(db) < this.#walBytes + grownBytes) return;
    checkpoint(db);
    this.#walBytes = walBytes(db);
  }
}

function spaced(tell: (progress: string) => void): (progress: string) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = nowMs;
    tell(progress);
  };
}
