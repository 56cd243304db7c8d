/** The appliance's part in the copy of its installation: writes it, follows it, or finds that another machine took over. */
import type { AccessReader } from './auth/access-reader.ts';
import { now } from './clock.ts';
import type { Config } from './config/load.ts';
import { type KeptCopy, keepCopy } from './copy/keep.ts';
import { openPlace, openTried } from './copy/open-place.ts';
import { requireNewest } from './copy/source.ts';
import type { Conditions } from './health/alert-conditions.ts';
import { HELD_UP_INGEST } from './health/alert-texts.ts';
import type { Mark } from './log/format.ts';
import type { Logger } from './logger.ts';
import { misconfigured, reasonOf } from './refused.ts';
import type { CopyState } from './store/copy-state.ts';
import type { DetectionsReader } from './store/detections-reader.ts';
import { type DataFolder, isThere } from './store/folder.ts';
import { readLogMark } from './store/log-mark.ts';
import { ensureRole, noteRole, type Role, readRole, roleOf } from './store/role.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

export interface CopyParts {
  readonly folder: DataFolder;
  readonly access: AccessReader;
  readonly reader: DetectionsReader;
  readonly conditions: Conditions;
}

export type ApplianceCopy = ReturnType<typeof createApplianceCopy>;

/** How long a standby may be without the place before it is an alert. */
const SILENT_MS_MAX = 5 * MINUTE_MS;

/**
 * Call {@link requireRole} first.
 * @param stopIngest called once another machine has taken over
 */
export function createApplianceCopy(
  { copy, verify }: Config,
  { folder, access, reader, conditions }: CopyParts,
  log: Logger,
  stopIngest: () => void,
) {
  let role = roleOf(readRole(folder), copy);
  let kept: KeptCopy | null = null;
  let following: CopyState | null = null;
  let heardMs = now();
  const writing = Promise.withResolvers<void>();
  /** The entry for which ingest waits. */
  let proposed: { readonly entry: Mark; readonly decided: () => void } | null = null;

  function takenOver(by: string): void {
    role = 'superseded';
    log.error({ by }, 'another machine took over: ingest stops, and clients get 503');
    conditions.set('another machine took over', by);
    reader.end('Another machine serves this installation now. Ask the operator for its address.');
    stopIngest();
    try {
      noteRole(folder, { ...readRole(folder), superseded: by });
    } catch (error) {
      log.warn(
        { reason: reasonOf(error) },
        'cannot note that another machine took over: the next start finds it out again',
      );
    }
  }

  return {
    /** Resolves once the copy has this entry: never, where another machine took over. */
    decide: (entry: Mark): Promise<void> =>
      new Promise((decided) => {
        proposed = { entry, decided };
        kept?.wake();
      }),
    role: (): Role => role,
    /** Whether damaged parts of the log can be made anew from the copy now. */
    async canHeal(): Promise<boolean> {
      if (copy.to === '') return false;
      try {
        await requireNewest(await openPlace(copy.to, copy), folder);
        return true;
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'the damaged log cannot be made anew from the copy');
        return false;
      }
    },
    /** Resolves once a standby has become the writer. */
    writing: (): Promise<void> => writing.promise,
    state: (): CopyState | null => kept?.state() ?? following,
    /** Begins to write, if this machine is the writer and has a place. */
    write(): void {
      if (role !== 'writer' || copy.to === '' || kept !== null) return;
      kept = keepCopy({
        to: copy.to,
        open: () => openTried(copy.to, copy),
        folder,
        applied: () => readLogMark(reader.db()),
        proposed: () => proposed?.entry ?? null,
        onCopied({ entry }) {
          if (proposed === null || proposed.entry.entry > entry) return;
          proposed.decided();
          proposed = null;
        },
        accessChange: () => access.change(),
        verifyEveryMs: verify.every_hours * HOUR_MS,
        now,
        log: (level, msg, fields) => log[level](fields, msg),
        onAlert(detail, holdsUpIngest) {
          conditions.set('copy behind', holdsUpIngest ? null : detail);
          conditions.set('copy behind', holdsUpIngest ? detail : null, HELD_UP_INGEST);
        },
        onDiskFull: (detail) => conditions.set('disk full', detail, 'copy'),
        onTakenOver: takenOver,
      });
    },
    following(state: CopyState): void {
      const { failure, to } = state;
      if (failure !== null && following?.failure == null)
        log.warn({ to, reason: failure }, 'cannot read the copy: it is tried again');
      if (failure === null && following?.failure != null) log.info({ to }, 'the copy is read again');
      following = state;
      if (failure === null) heardMs = now();
      const isLate = failure !== null && now() - heardMs >= SILENT_MS_MAX;
      conditions.set('copy behind', isLate ? `${to} cannot be read: ${failure}` : null);
    },
    promoted(): void {
      if (role === 'writer') return;
      role = 'writer';
      writing.resolve();
      following = null;
      conditions.set('copy behind', null);
      log.warn({ to: copy.to }, 'this machine is the writer now: it was promoted');
      this.write();
    },
    close: async (): Promise<void> => kept?.close(),
  };
}

/**
 * Call it before anything is created in the folder.
 * @throws Refused `configuration` if another machine has taken over, or if a standby has nothing to begin with
 */
export function requireRole(folder: DataFolder, { copy }: Pick<Config, 'copy'>): void {
  const note = ensureRole(folder);
  if (note.superseded !== null)
    throw misconfigured(
      `another machine took over from this one (${note.superseded}). Make this one its standby: set [copy] standby, and run wirewatch restore ${copy.to} --replace. To go on here instead, stop the other machine for good, delete ${folder.role}, and set [copy] to to a new place.`,
    );
  if (roleOf(note, copy) === 'standby' && !isThere(folder.access) && !isThere(folder.spare))
    throw misconfigured(
      `a standby begins with what the copy has. Run this first: wirewatch restore ${copy.to} --data ${folder.root}`,
    );
}
