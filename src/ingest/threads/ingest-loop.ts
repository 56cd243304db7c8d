/**
 * The ingest loop: owns the writing connection to detections.db, scans the drop folder, processes one file after the other
 * and serves the requests of operators.
 */
import { openRemovals } from '../../auth/removal.ts';
import { aheadMs, monotonicMs, now } from '../../clock.ts';
import type { LogWriter } from '../../history/log-writer.ts';
import type { Recovered } from '../../history/recover.ts';
import { paced } from '../../pace.ts';
import { isErrorCode } from '../../refused.ts';
import { CHECKPOINT_BYTES, checkpoint, closeDetections, walBytes } from '../../store/checkpoint.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { type DataFolder, dataFolder, requireRoom } from '../../store/folder.ts';
import { HOUR_MS, SECOND_MS } from '../../time.ts';
import { heldBy } from '../../windows/holding.ts';
import { newestWindowEnd } from '../../windows/ledger.ts';
import { MissingWindows } from '../../windows/overdue-search.ts';
import { ingestBackfill } from '../apply/backfill.ts';
import { LostEnd } from '../apply/lost-end.ts';
import { type Removals, serveRemovals } from '../apply/remove-rows.ts';
import { StreamWriter } from '../apply/stream-writer.ts';
import { ingestWindowFile, putAway } from '../apply/window-file.ts';
import { ChangedFiles } from '../drop/changed-files.ts';
import type { DropFolder, Waiting } from '../drop/drop-folder.ts';
import { type FileStore, nextNumber, removeTemporary } from '../drop/finished-file.ts';
import { FolderScanner } from '../drop/folder-scan.ts';
import { Retention } from '../drop/retention.ts';
import { waitingWindows } from '../drop/waiting-names.ts';
import { nullOfFileError, plainError } from '../file-errors.ts';
import { type FileRecord, processedFile } from '../file-record.ts';
import { switchedOff } from '../format/file-name.ts';
import { readPause } from '../pause.ts';
import { type Log, onlyChanges } from '../reporting.ts';
import { handleRequests } from '../requests/handle-requests.ts';
import {
  type HandleRequest,
  type IngestRequest,
  type RequestOutcome,
  withTimes,
} from '../requests/requests.ts';
import { SteadyClock } from '../steady-clock.ts';
import { AccessConnection } from './access-connection.ts';
import { ExportReader } from './export-reader.ts';
import { FullDisk } from './full-disk.ts';
import type { IngestEvent, IngestSettings } from './ingest-messages.ts';
import { StuckFiles } from './stuck-files.ts';
import { UnfinishedFiles } from './unfinished-files.ts';
import { WakeableTimer } from './wakeable-timer.ts';

/** Between two notes on the progress of a request. */
const TELL_EVERY_MS = 500;

/** Thrown to abandon unfinished work when the thread is to end. */
export class Stopping extends Error {}

/** A request that waits, or is being served. */
interface Asked {
  readonly request: IngestRequest;
  readonly tell: (progress: string) => void;
  readonly resolve: (outcome: RequestOutcome) => void;
}

export class Ingester {
  readonly lostEnd: LostEnd;
  readonly #settings: IngestSettings;
  readonly #folder: DataFolder;
  readonly #access: AccessConnection;
  readonly #logWriter: LogWriter;
  readonly #files: FileStore;
  readonly #exports: ExportReader;
  readonly #removals: Removals;
  readonly #handle: HandleRequest;
  readonly #scanner: FolderScanner;
  readonly #retention: Retention;
  readonly #changed: ChangedFiles;
  readonly #missing: MissingWindows;
  readonly #stuck: StuckFiles;
  readonly #disk: FullDisk;
  readonly #unfinished: UnfinishedFiles;
  readonly #clock = new SteadyClock(aheadMs, monotonicMs);
  readonly #timer = new WakeableTimer();
  readonly #send: (event: IngestEvent) => void;
  readonly #log: Log;
  /** The first one is being served. */
  readonly #asked: Asked[] = [];
  /** Of calls that wait until nothing is left to do. */
  readonly #resting: (() => void)[] = [];
  /** The open removals that the last attempt left. */
  #removalsTried = '';
  /** When they are tried again: monotonic milliseconds. */
  #removalsNextMs = 0;
  #isStopping = false;
  /** Of the write-ahead log after the last checkpoint. */
  #walBytes = 0;

  constructor(
    settings: IngestSettings,
    drop: DropFolder,
    { db, log: logWriter }: Recovered,
    send: (event: IngestEvent) => void,
  ) {
    this.#settings = settings;
    this.#folder = dataFolder(settings.data);
    this.#logWriter = logWriter;
    this.#send = send;
    this.#access = new AccessConnection(this.#folder);
    const log: Log = (level, msg, fields = {}) => send({ kind: 'log', level, msg, fields });
    const setCondition = onlyChanges((name, detail) => send({ kind: 'condition', name, detail }));
    const folder = this.#folder.log;
    const writer = new StreamWriter({
      db,
      log: logWriter,
      folder,
      now,
      onDelivered: (first_position, delivered_at) =>
        send({ kind: 'delivered', first_position, delivered_at }),
    });
    this.#log = log;
    // By a clock that is behind, files would look too far ahead, and those just read as old as what retention deletes.
    // Only windows prove that it is behind: delivery times stay ahead after a clock that was.
    const filesNow = () => Math.max(now(), newestWindowEnd(db));
    this.#files = { drop, writer, now: filesNow, log };
    const { program } = settings;
    this.#removals = { access: this.#access, writer, folder: this.#folder, program, log, setCondition };
    this.#exports = new ExportReader({
      access: this.#access,
      settings,
      now: filesNow,
      onProgress: (file, rows, isDone) => send({ kind: 'progress', file, rows, isDone }),
    });
    const stuck = new StuckFiles(setCondition);
    this.#stuck = stuck;
    const parts = { files: this.#files, exports: this.#exports, between: this.#between };
    const onProcessed = (record: FileRecord) => this.#report(record);
    this.#handle = handleRequests({ ...parts, removals: this.#removals, onProcessed });
    this.#unfinished = new UnfinishedFiles({ ...parts, stuck, log, onProcessed });
    this.#disk = new FullDisk({
      timer: this.#timer,
      check: this.#check,
      beforeRetry: () => this.#unfinished.finishTaken(),
      log,
      setCondition,
    });
    this.#scanner = new FolderScanner(this.#files, settings, setCondition);
    this.#retention = new Retention(this.#files, settings.archive_days);
    this.#changed = new ChangedFiles(this.#files, settings.rescan_seconds * SECOND_MS, setCondition);
    this.#missing = new MissingWindows({
      db,
      exports: settings.enabled_exports,
      write: (work) => writer.write({ kind: 'look for missing windows' }, work),
      between: this.#between,
      waitingWindows: (exportName) => waitingWindows(drop.root, exportName),
    });
    this.lostEnd = new LostEnd({ writer, now, log, setCondition, onNoted: () => this.#timer.wake() });
  }

  stop(): void {
    this.#isStopping = true;
    // A file without any valid row could be read for minutes.
    this.#exports.abort(new Stopping());
    this.#timer.wake();
  }

  /** Serves a request. If the loop ends before, it never resolves. */
  ask(request: IngestRequest, tell: (progress: string) => void): Promise<RequestOutcome> {
    return new Promise((resolve) => {
      this.#asked.push({ request, tell: spaced(tell), resolve });
      this.#timer.wake();
    });
  }

  /** Looks at access.db again. */
  wake(): void {
    this.#timer.wake();
  }

  /** Resolves when everything of this moment is processed. */
  rested(): Promise<void> {
    return new Promise((resolve) => {
      this.#resting.push(resolve);
      this.#timer.wake();
    });
  }

  /** Works until it is stopped. */
  async run(): Promise<void> {
    if (this.#settings.mode === 'serve') {
      const onError = (err: unknown) =>
        this.#log('warn', 'no file events from the drop folder: scanning it instead', { err });
      void this.#files.drop.watch(() => this.#timer.wake(), onError);
    }
    try {
      // A start with nothing to write would notice a full disk only with the first file.
      if (this.#settings.mode === 'serve') await this.#disk.retrying(() => requireRoom(this.#folder));
      await this.#disk.retrying(() => this.#files.writer.flush());
      removeTemporary(this.#files, this.#unfinished.recordsInTaken());
      await this.#loop();
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#files.drop.close();
    await this.#exports.close();
    const { writer } = this.#files;
    for (const work of [() => writer.flush(), () => closeDetections(writer.db)]) {
      try {
        work();
      } catch (error) {
        this.#log('error', 'cannot write the final notes', { err: plainError(error) });
      }
    }
    this.#logWriter.close();
    this.#access.close();
  }

  async #loop(): Promise<void> {
    while (!this.#isStopping) {
      this.#timer.begin();
      const resting = this.#resting.length;
      await this.#disk.retrying(() => this.#unfinished.finishTaken());
      await this.#disk.retrying(() => this.lostEnd.makeUp());
      await this.#disk.retrying(() => this.#unfinished.takeOrphaned());
      // The file of one may be among those from the archive.
      await this.#unfinished.resumeBackfills(this.#disk);
      await this.#serveRequests();
      const rescanMs = this.#settings.rescan_seconds * SECOND_MS;
      if (this.#settings.mode === 'alone') {
        await this.#timer.sleep(rescanMs);
        continue;
      }
      const nextScanMs = (await this.#takeFiles('all')) ?? rescanMs;
      if (nextScanMs === 0) continue;
      await this.#disk.retrying(() => this.#rest());
      for (const resolve of this.#resting.splice(0, resting)) resolve();
      await this.#timer.sleep(Math.min(nextScanMs, this.#stuck.retryMs, rescanMs));
    }
  }

  /** Between the transactions of long work, windows and a stop have priority. */
  readonly #between = async (): Promise<void> => {
    this.#check();
    this.#checkpoint(CHECKPOINT_BYTES);
    await this.#turn();
    if (this.#settings.mode === 'serve') await this.#takeFiles('windows');
  };

  /** A stop arrives only when the event loop turns. */
  async #turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#check();
  }

  readonly #check = (): void => {
    if (this.#isStopping) throw new Stopping();
  };

  async #serveRequests(): Promise<void> {
    for (let asked = this.#asked[0]; asked !== undefined; asked = this.#asked[0]) {
      const { request, tell, resolve } = asked;
      await this.#disk.retrying(async () => {
        const outcome = await this.#handle(request, tell);
        this.#log('info', 'request served', { request: withTimes(request), outcome });
        resolve(outcome);
      });
      if (request.kind === 'remove') this.#noteRemovals();
      this.#asked.shift();
      this.#check();
    }
    // Whoever removed something may not wait for it, or be about to ask. The first time, a restored log is looked at.
    const open = String(this.#access.use((access) => openRemovals(access)));
    const isTried = open === this.#removalsTried && performance.now() < this.#removalsNextMs;
    if (isTried) return;
    const tell = (progress: string) => {
      for (const asked of this.#asked) if (asked.request.kind === 'remove') asked.tell(progress);
    };
    const work = { between: this.#between, tell };
    await this.#disk.retrying(async () => {
      const outcome = await serveRemovals(this.#removals, work);
      if (open !== '' && outcome.left_in_log === null) this.#log('info', 'removal completed', { outcome });
    });
    this.#noteRemovals();
  }

  /** Those that are left are tried again in an hour. */
  #noteRemovals(): void {
    this.#removalsTried = String(this.#access.use((access) => openRemovals(access)));
    this.#removalsNextMs = performance.now() + paced(HOUR_MS);
  }

  /** @returns milliseconds until the next scan: 0 for at once, null when nothing waits */
  async #takeFiles(which: 'all' | 'windows'): Promise<number | null> {
    if (this.#access.use(readPause) !== null) return null;
    if (which === 'all') await this.#disk.retrying(() => this.#changed.run());
    const scan = await this.#scanner.scan(this.#check);
    if (scan === null) return null;
    const paths = scan.ready.map(({ path }) => path);
    this.#stuck.keepOnly('dropped', paths);
    let processed = 0;
    for (const waiting of scan.ready) {
      if (which === 'windows' && !(waiting.kind === 'export' && waiting.file.kind === 'window')) continue;
      if (this.#stuck.isPostponed('dropped', waiting.path)) continue;
      await this.#process(waiting);
      processed += 1;
      await this.#turn();
      // A pause begins with the next file, and a request does not wait for the whole folder.
      if (this.#access.use(readPause) !== null || this.#asked.length > 0) break;
    }
    return processed > 0 ? 0 : scan.nextScanMs;
  }

  async #process(waiting: Waiting): Promise<void> {
    try {
      const record = await this.#ingest(waiting);
      if (record !== null) this.#report(record, waiting);
      this.#stuck.remove('dropped', waiting.path);
      this.#disk.isOver();
    } catch (error) {
      // After a full disk the next scan finds the file again, here or in .taken.
      if (isDiskFull(error)) {
        await this.#disk.wait(error);
        return this.#disk.retrying(() => this.#unfinished.finishTaken());
      }
      // Its writer removed or replaced it: the next scan finds what is there now.
      if (isErrorCode(error, 'ENOENT', 'ESTALE', 'ELOOP', 'ENXIO') && !this.#files.drop.isUnchanged(waiting))
        return;
      const err = this.#stuck.add(error, 'dropped', waiting.path, waiting.name);
      this.#log('error', 'cannot process a dropped file: check its permissions; trying again', {
        file: waiting.name,
        err,
      });
    }
  }

  async #ingest(waiting: Waiting): Promise<FileRecord | null> {
    const files = this.#files;
    const isRead = waiting.kind === 'export' && this.#exports.isEnabled(waiting.file);
    if (!isRead) {
      const reason = waiting.kind === 'refused' ? waiting.reason : switchedOff(waiting.file.export);
      return putAway(files, waiting, nextNumber(files), { outcome: 'refused', reason });
    }
    const { file } = waiting;
    // A file before it in the same scan may have failed.
    if (heldBy(files.writer.db, this.#settings)(file) !== null) return null;
    return file.kind === 'window'
      ? ingestWindowFile(files, this.#exports, { ...waiting, file })
      : ingestBackfill(files, this.#exports, { ...waiting, file }, this.#between);
  }

  /** Logs and counts a file, once. @param read the file as it was read, if it was dropped */
  #report(record: FileRecord, read?: Waiting): void {
    if (read !== undefined) this.#changed.note(record, read.snapshot);
    const { number, name, outcome, destination } = record;
    const { errors: _, error_groups: __, ...report } = record.report;
    const isBad = outcome === 'failed' || outcome === 'refused';
    // A command that does the work itself prints the outcome.
    const level = isBad && this.#settings.mode === 'serve' ? 'warn' : 'info';
    this.#log(level, `file ${outcome}`, { number, file: name, destination, ...report });
    this.#send({ kind: 'processed', file: processedFile(record) });
    this.#checkpoint(CHECKPOINT_BYTES);
  }

  /** Work for when no file waits. */
  async #rest(): Promise<void> {
    this.#files.writer.flush();
    const isSteady = this.#clock.isSteady();
    // A file that waits in a folder that cannot be read is not missing. One that has gone since is searched next time.
    const found = this.#scanner.isUsable
      ? await this.#missing.search(now(), isSteady).catch(nullOfFileError)
      : null;
    if (found !== null) this.#log('info', 'checked for missing windows', { ...found });
    this.#disk.isOver();
    this.#checkpoint(1);
    if (this.#clock.isProven()) this.#retention.run();
  }

  /** @param grownBytes by how much the write-ahead log must have grown: a reader may keep it from being emptied */
  #checkpoint(grownBytes: number): void {
    const { db } = this.#files.writer;
    if (walBytes(db) < this.#walBytes + grownBytes) return;
    checkpoint(db);
    this.#walBytes = walBytes(db);
  }
}

/** Passes on what is said, but not too often. */
function spaced(tell: (progress: string) => void): (progress: string) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = nowMs;
    tell(progress);
  };
}
