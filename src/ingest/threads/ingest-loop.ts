/**
 * The one who ingests: owns the writing connection to detections.db, looks into the drop folder, deals with one file
 * after the other, and serves what commands ask for.
 */

import { monotonicMs, now } from '../../clock.ts';
import type { LogWriter } from '../../history/log-writer.ts';
import type { Recovered } from '../../history/recover.ts';
import { paced } from '../../pace.ts';
import { isErrorCode } from '../../refused.ts';
import { ACCESS_SCHEMA } from '../../store/access-schema.ts';
import { type Database, openDatabase } from '../../store/database.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { checkpointNoted } from '../../store/file-identity.ts';
import { dataFolder, isThere, requireRoom } from '../../store/folder.ts';
import { isLocked } from '../../store/locks.ts';
import { HOUR_MS, SECOND_MS } from '../../time.ts';
import { ingestBackfill, resumeUnfinished } from '../apply/backfill.ts';
import { applyingFiles, dealtWithOf, type FileRecord, lastFileNumber } from '../apply/file-record.ts';
import { LostEnd } from '../apply/lost-end.ts';
import { WindowLook } from '../apply/missing-windows.ts';
import { finishRemovals } from '../apply/remove-rows.ts';
import { StreamWriter } from '../apply/stream-writer.ts';
import { readPause } from '../apply/subscribers.ts';
import { ingestWindowFile, putAway } from '../apply/window-file.ts';
import type { DropFolder, Scan, Waiting } from '../drop/drop-folder.ts';
import { logOutcome, recordsInTaken, removeSkipped, settle } from '../drop/finished-file.ts';
import { DropLook } from '../drop/folder-errors.ts';
import { OrphanedFiles } from '../drop/orphaned.ts';
import { Retention } from '../drop/retention.ts';
import { switchedOff } from '../format/file-name.ts';
import { nextRequest, serveRequest } from '../requests/requests.ts';
import { SteadyClock } from '../steady-clock.ts';
import type { FromIngest, IngestSettings, TroubleName } from './ingest-settings.ts';
import { ReaderClient } from './reader-client.ts';
import { isFileError, plainError } from './thread-errors.ts';
import { Sleeper } from './wakeable-timer.ts';
import { isEnabled, Stopping, type Workshop } from './workshop.ts';

/** How often it is looked whether a command changed something. */
const COMMANDS_EVERY_MS = 200;
const CHECKPOINT_ROWS = 10_000;
/** After a full disk, and after a file that could not be dealt with. */
export const RETRY_MS = paced(10 * SECOND_MS);

export class Ingester {
  readonly #settings: IngestSettings;
  readonly #workshop: Workshop;
  readonly #dropLook: DropLook;
  readonly #retention: Retention;
  readonly #clock = new SteadyClock(now, monotonicMs);
  readonly #windowLook = new WindowLook();
  /** Files that could not be dealt with, and when they are tried again (monotonic milliseconds). */
  readonly #postponed = new Map<string, number>();
  /** Backfills that cannot be gone on with, by number, and when they are tried again. */
  readonly #stuckBackfills = new Map<number, number>();
  readonly #orphaned: OrphanedFiles;
  /** When it is looked for removals that were not seen to their end (monotonic milliseconds). */
  #removalsNextMs = 0;
  #isStopping = false;
  readonly #sleeper = new Sleeper();
  #isSettlingStuck = false;
  /** How often it was asked to tell when it rests. */
  #restsAsked = 0;
  readonly #log: LogWriter;
  #accessVersion = 0;
  #rowsSinceCheckpoint = 0;
  readonly lostEnd: LostEnd;
  readonly #send: (message: FromIngest) => void;

  constructor(
    settings: IngestSettings,
    drop: DropFolder,
    { db, log }: Recovered,
    send: (message: FromIngest) => void,
  ) {
    this.#settings = settings;
    this.#send = send;
    const folder = dataFolder(settings.data);
    // Between transactions, not within: a checkpoint in the middle of a large one costs more than it saves.
    db.pragma('wal_autocheckpoint = 0');
    this.#log = log;
    const writer = new StreamWriter({
      db,
      log,
      folder: folder.log,
      now,
      onDelivered: (firstPosition, deliveredAt) =>
        send({ kind: 'delivered', first_position: firstPosition, delivered_at: deliveredAt }),
    });
    const troubles = new Map<TroubleName, string | null>();
    let lastNumber = drop.takenNumbers().at(-1) ?? 0;
    this.#workshop = {
      db,
      access: openDatabase(folder.access, 'write', ACCESS_SCHEMA),
      folder,
      drop,
      reader: new ReaderClient({ photo_key: settings.photo_key }),
      writer,
      settings,
      now,
      log: (level, msg, fields = {}) => send({ kind: 'log', level, msg, fields }),
      trouble: (name, detail) => {
        if ((troubles.get(name) ?? null) !== detail) send({ kind: 'trouble', name, detail });
        troubles.set(name, detail);
      },
      dealtWith: (record) => this.#report(record),
      progress: (file, rows, isDone) => send({ kind: 'progress', file, rows, isDone }),
      between: () => this.#between(),
      check: () => this.#check(),
      nextNumber: () => {
        lastNumber = Math.max(lastNumber, lastFileNumber(db)) + 1;
        return lastNumber;
      },
    };
    this.#dropLook = new DropLook(this.#workshop);
    this.#retention = new Retention(this.#workshop);
    this.#orphaned = new OrphanedFiles(this.#workshop, RETRY_MS);
    this.lostEnd = new LostEnd(this.#workshop, () => this.#sleeper.wake());
  }

  stop(): void {
    this.#isStopping = true;
    // A file of which no rows come could be read for minutes.
    this.#workshop.reader.abort(new Stopping());
    this.#sleeper.wake();
  }

  /** Has `rested` sent once what is there now is processed. */
  askRest(): void {
    this.#restsAsked += 1;
    this.#sleeper.wake();
  }

  /** Works until it is stopped; in `requests` mode until nothing is asked for. */
  async run(): Promise<void> {
    const { drop, access, folder } = this.#workshop;
    const commands = setInterval(() => this.#noticeOthers(access), COMMANDS_EVERY_MS);
    if (this.#settings.mode === 'serve') {
      const onError = (err: unknown) =>
        this.#workshop.log('warn', 'no file events from the drop folder: scanning it instead', { err });
      void drop.watch(() => this.#sleeper.wake(), onError);
    }
    try {
      // A start with nothing to write would notice a full disk only when a file is dropped.
      if (this.#settings.mode === 'serve') await this.#retrying(async () => requireRoom(folder));
      await this.#retrying(async () => this.#workshop.writer.flush());
      removeSkipped(this.#workshop, this.#recordsInTaken());
      await this.#loop();
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    } finally {
      clearInterval(commands);
    }
  }

  async close(): Promise<void> {
    const { db, access, drop, reader, writer, log } = this.#workshop;
    await drop.close();
    await reader.close();
    try {
      writer.flush();
      this.#checkpoint('TRUNCATE');
    } catch (error) {
      log('error', 'cannot write the final notes', { err: plainError(error) });
    }
    this.#log.close();
    db.close();
    access.close();
  }

  /** Completes what a crash, a full disk or a folder's rights left between a commit and the archive. */
  #settleLeft(): void {
    this.#workshop.writer.applyPending();
    this.#isSettlingStuck = false;
    for (const record of this.#recordsInTaken()) {
      if (record.outcome === 'applying') continue;
      try {
        settle(this.#workshop, record);
        this.#workshop.dealtWith(record);
      } catch (error) {
        const err = this.#noteStuck(record.name, error);
        this.#isSettlingStuck = true;
        this.#workshop.log('error', 'cannot move a processed file: check the permissions of the folder', {
          file: record.destination,
          err,
        });
      }
    }
  }

  /** None while the drop folder cannot be read, which is told when it is scanned. */
  #recordsInTaken(): FileRecord[] {
    try {
      return recordsInTaken(this.#workshop);
    } catch (error) {
      if (!isFileError(error)) throw error;
      return [];
    }
  }

  /** Goes on with what a crash or a full disk left half applied. */
  async #resumeBackfills(): Promise<void> {
    for (const record of applyingFiles(this.#workshop.db)) {
      const { number, name } = record;
      if ((this.#stuckBackfills.get(number) ?? 0) > performance.now()) continue;
      try {
        await this.#retrying(async () => {
          const resumed = await resumeUnfinished(this.#workshop, record);
          if (resumed !== null) this.#workshop.dealtWith(resumed);
        });
        this.#stuckBackfills.delete(number);
      } catch (error) {
        const err = this.#noteStuck(name, error);
        this.#stuckBackfills.set(number, performance.now() + RETRY_MS);
        this.#workshop.log('error', 'cannot resume a backfill: check its permissions; trying again', {
          file: name,
          err,
        });
      }
    }
  }

  async #loop(): Promise<void> {
    while (!this.#isStopping) {
      this.#sleeper.begin();
      const asked = this.#restsAsked;
      await this.#retrying(async () => this.#settleLeft());
      await this.#resumeBackfills();
      await this.#retrying(async () => this.lostEnd.makeUp());
      await this.#retrying(async () => this.#orphaned.take());
      if (performance.now() >= this.#removalsNextMs) {
        await this.#retrying(async () => void (await finishRemovals(this.#workshop)));
        this.#removalsNextMs = performance.now() + paced(HOUR_MS);
      }
      await this.#serveRequests();
      if (this.#settings.mode === 'requests') return;
      const nextLookMs = (await this.#takeFiles('all')) ?? this.#settings.rescan_seconds * SECOND_MS;
      if (nextLookMs === 0) continue;
      await this.#retrying(() => this.#rest());
      for (const until = this.#restsAsked - asked; this.#restsAsked > until; this.#restsAsked -= 1)
        this.#send({ kind: 'rested' });
      const isStuck = this.#stuckBackfills.size > 0 || this.#orphaned.isStuck;
      const retryMs = isStuck ? RETRY_MS : Number.POSITIVE_INFINITY;
      await this.#sleeper.sleep(Math.min(nextLookMs, retryMs, this.#settings.rescan_seconds * SECOND_MS));
    }
  }

  /** Between the transactions of long work: what is more urgent gets its turn. */
  async #between(): Promise<void> {
    this.#check();
    this.#checkpoint();
    // A message that asks to stop is heard only when the event loop turns.
    await new Promise((resolve) => setImmediate(resolve));
    this.#check();
    if (this.#settings.mode === 'serve') await this.#takeFiles('windows');
  }

  #check(): void {
    if (this.#isStopping) throw new Stopping();
  }

  async #serveRequests(): Promise<void> {
    for (;;) {
      const open = nextRequest(this.#workshop.access);
      if (open === null) return;
      await this.#retrying(() => serveRequest(this.#workshop, open));
      this.#check();
    }
  }

  /** @returns milliseconds until another look is worth while: 0 for at once, null when nothing waits */
  async #takeFiles(which: 'all' | 'windows'): Promise<number | null> {
    if (readPause(this.#workshop.access) !== null) return null;
    const scan = this.#dropLook.scan();
    if (scan === null) return null;
    this.#forgetGone(scan);
    let dealtWith = 0;
    for (const waiting of scan.ready) {
      if (which === 'windows' && !(waiting.kind === 'export' && waiting.file.kind === 'window')) continue;
      if ((this.#postponed.get(waiting.path) ?? 0) > performance.now()) continue;
      await this.#dealWith(waiting);
      dealtWith += 1;
      this.#check();
      // A pause holds from the next file on, and what a command asks for does not wait for the whole folder.
      if (readPause(this.#workshop.access) !== null || nextRequest(this.#workshop.access) !== null) break;
    }
    return dealtWith > 0 ? 0 : scan.nextLookMs;
  }

  async #dealWith(waiting: Waiting): Promise<void> {
    try {
      const record = await this.#ingest(waiting);
      if (record !== null) this.#workshop.dealtWith(record);
      this.#postponed.delete(waiting.path);
      this.#workshop.trouble('disk full', null);
    } catch (error) {
      // It may lie elsewhere by now: the next scan finds it again.
      if (isDiskFull(error)) {
        await this.#waitForRoom(error);
        return this.#retrying(async () => this.#settleLeft());
      }
      // Taken away by whoever dropped it.
      if (isErrorCode(error, 'ENOENT') && !isThere(waiting.path)) return;
      const err = this.#noteStuck(waiting.name, error);
      this.#postponed.set(waiting.path, performance.now() + RETRY_MS);
      this.#workshop.log('error', 'cannot process a dropped file: check its permissions; trying again', {
        file: waiting.name,
        err,
      });
    }
  }

  async #ingest(waiting: Waiting): Promise<FileRecord | null> {
    const workshop = this.#workshop;
    const refused = (reason: string) =>
      putAway(workshop, waiting, workshop.nextNumber(), { outcome: 'refused', reason });
    if (waiting.kind === 'refused') return refused(waiting.reason);
    const { file } = waiting;
    if (!isEnabled(workshop, file.export)) return refused(switchedOff(file.export));
    return file.kind === 'window'
      ? ingestWindowFile(workshop, { ...waiting, file })
      : ingestBackfill(workshop, { ...waiting, file });
  }

  /** A file that cannot be read or moved keeps no other from being dealt with. @returns its fault, for the log */
  #noteStuck(name: string, error: unknown) {
    if (!isFileError(error)) throw error;
    const err = plainError(error);
    this.#workshop.trouble('file stuck', `${name}: ${err.message}`);
    return err;
  }

  /** Files that could not be dealt with and have gone since are nobody's trouble any more. */
  #forgetGone(scan: Scan): void {
    const there = new Set(scan.ready.map(({ path }) => path));
    for (const path of this.#postponed.keys()) if (!there.has(path)) this.#postponed.delete(path);
    const stuck = this.#postponed.size + this.#stuckBackfills.size + Number(this.#orphaned.isStuck);
    if (stuck === 0 && !this.#isSettlingStuck) this.#workshop.trouble('file stuck', null);
  }

  /** A full disk is waited out: nothing is lost by it, and reads go on. */
  async #retrying(work: () => Promise<void>): Promise<void> {
    for (let hasWaited = false; ; hasWaited = true) {
      try {
        // What is decided comes before anything else: it is applied, and its file goes to the archive.
        if (hasWaited) this.#settleLeft();
        await work();
        // What failed for want of room has succeeded.
        if (hasWaited) this.#workshop.trouble('disk full', null);
        return;
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        await this.#waitForRoom(error);
      }
    }
  }

  async #waitForRoom(error: unknown): Promise<void> {
    const err = plainError(error);
    this.#workshop.log('error', 'the disk is full: ingest waits for free space', { err });
    this.#workshop.trouble('disk full', err.message);
    this.#sleeper.begin();
    if (!this.#isStopping) await this.#sleeper.sleep(RETRY_MS);
    this.#check();
  }

  #report(record: FileRecord): void {
    this.#rowsSinceCheckpoint += record.report.rows ?? 0;
    logOutcome(this.#workshop, record);
    this.#send({ kind: 'dealt_with', file: dealtWithOf(record) });
    if (this.#rowsSinceCheckpoint >= CHECKPOINT_ROWS) this.#checkpoint();
  }

  /** Nothing waits: what was put off is done. */
  async #rest(): Promise<void> {
    this.#workshop.writer.flush();
    // A file that waits in a folder that cannot be read is not missing.
    const isSteady = this.#clock.isSteady();
    if (this.#dropLook.isUsable) await this.#windowLook.run(this.#workshop, isSteady);
    this.#workshop.trouble('disk full', null);
    if (this.#rowsSinceCheckpoint > 0) this.#checkpoint('TRUNCATE');
    if (isSteady) this.#retention.look();
  }

  #checkpoint(how: 'PASSIVE' | 'TRUNCATE' = 'PASSIVE'): void {
    this.#rowsSinceCheckpoint = 0;
    checkpointNoted(this.#workshop.db, how);
  }

  #noticeOthers(access: Database): void {
    // A command that works where no appliance runs gives way to one that starts.
    if (this.#settings.mode === 'requests' && isLocked(this.#workshop.folder.serveLock)) this.stop();
    const version = Number(access.pragma('data_version', { simple: true }));
    if (version === this.#accessVersion) return;
    this.#accessVersion = version;
    this.#sleeper.wake();
  }
}
