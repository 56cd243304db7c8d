/**
 * One operation of the journal, done again: with the file of then, in the order of then, under the number of then.
 *
 * What stands in the journal and is not in the database is read from where the file lies now: in the archive, or,
 * where a crash came before the commit, in `.taken`.
 */
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isThere, sha256Of } from '../store/folder.ts';
import type { JournalMark } from '../store/journal-lines.ts';
import { parseInstant } from '../time.ts';
import { findWindow, setLook, setWindow } from '../windows/ledger.ts';
import type { Applier, ApplyCounts } from './apply.ts';
import { backfillOrder, withPart } from './backfill.ts';
import { shortName } from './drop-folder.ts';
import { judgeName } from './export-name.ts';
import { type FileRecord, findFile, saveFile } from './file-record.ts';
import { OpenSpans } from './open-spans.ts';
import {
  type AppliedLine,
  type BeganLine,
  type PartLine,
  type ReplayedLine,
  recordIn,
  type UnappliedLine,
} from './operations.ts';
import type { OrderWithoutSession } from './reader-client.ts';
import { removeSubscription } from './removal.ts';
import { replayOrder } from './requests.ts';
import { type Rules, rulesOf, whyOtherRules } from './rules.ts';
import { settle } from './settlement.ts';
import type { Step } from './survey.ts';
import { saveApplied, saveUnapplied } from './window-file.ts';
import { readingOrder, type Workshop } from './workshop.ts';

export type Outcome =
  | { readonly kind: 'done' }
  /** It can be done, but not in a way that is proven to give what it gave then. Nothing was committed. */
  | { readonly kind: 'unproven'; readonly reason: string }
  /** Its file is not what it was. Nothing was committed. */
  | { readonly kind: 'impossible'; readonly file: string; readonly reason: string };

const DONE: Outcome = { kind: 'done' };

export class ReadAgain {
  readonly #workshop: Workshop;
  /** Where the journal says that files lie, by their number: those that were archived behind the mark. */
  readonly #archived: ReadonlyMap<number, string>;
  readonly #spans: OpenSpans;
  readonly #checked = new Map<string, string>();

  constructor(workshop: Workshop, steps: readonly Step[]) {
    this.#workshop = workshop;
    this.#archived = new Map(
      steps.flatMap((step) => (step.kind === 'applied' ? [[step.line.applied, step.line.archived]] : [])),
    );
    this.#spans = new OpenSpans(workshop);
  }

  /** @param isRaised whether versions were raised already, so that nothing has to be proven */
  doAgain(step: Step, isRaised: boolean): Promise<Outcome> | Outcome {
    const { mark } = step;
    switch (step.kind) {
      case 'applied':
        return step.line.reading === undefined
          ? this.#finishBackfill(step.line, mark)
          : this.#readWindow(step.line, step.line.reading, mark, isRaised);
      case 'began':
        return this.#beginBackfill(step.line, mark);
      case 'part':
        return this.#readPart(step.line, mark, isRaised);
      case 'replayed':
        return this.#replay(step.line, mark, isRaised);
      case 'unapplied':
        return this.#putAway(step.line, mark);
      case 'missing':
        return this.#setWindows(step.line, step.line.missing, 'missing', mark);
      case 'abandoned':
        return this.#setWindows(step.line, step.line.abandoned, 'abandoned', mark);
      case 'looked': {
        const { looked } = step.line;
        return this.#commit(null, mark, () => setLook(this.#workshop.db, looked));
      }
      case 'removed':
        return this.#remove(step.line.removed, mark);
      case 'raised':
        return this.pass(mark);
    }
  }

  /**
   * Whether an operation, the last one, was certainly never committed: its file was taken again since, under another
   * number. That is so after a full disk, when the next attempt did not come as far.
   */
  async isTakenAgain(step: Step): Promise<boolean> {
    const of = takenBy(step);
    if (of === null) return false;
    const { drop } = this.#workshop;
    const own = drop.takenPath(of.number, of.name);
    if (isThere(own) || (of.moved !== null && isThere(join(drop.root, of.moved)))) return false;
    for (const entry of readdirSync(dirname(own))) {
      const path = join(dirname(own), entry);
      if (entry.replace(/^\d+\./, '') !== shortName(of.name)) continue;
      if (of.sha256 === null || of.sha256 === (await sha256Of(path))) return true;
    }
    return false;
  }

  /** Leaves an operation behind. */
  pass(mark: JournalMark): Outcome {
    return this.#commit(null, mark, () => {});
  }

  close(): void {
    this.#spans.close();
  }

  async #readWindow(
    line: AppliedLine,
    reading: NonNullable<AppliedLine['reading']>,
    mark: JournalMark,
    isRaised: boolean,
  ): Promise<Outcome> {
    const then = recordIn(line.applied, 'applied', line, line.archived);
    const path = this.#sourceOf(then, line.archived);
    const wrong = await this.#whyNotThere(then, path);
    if (wrong !== null) return wrong;
    const judged = judgeName(then.name);
    if (judged.kind !== 'export') return { kind: 'impossible', file: then.name, reason: judged.kind };
    const options = { rows_to_skip: 0, check_only: false, skipped_path: null };
    const order = {
      ...readingOrder(this.#workshop, path, judged.file, options, readAt(reading)),
      bad_rows: 'skip' as const,
      require_trailer: false,
    };
    const doubt = isRaised ? null : this.#whyOtherRules(reading.rules, order);
    if (doubt !== null) return doubt;
    return this.#inTransaction(order, async (applier) => {
      const result = await this.#spans.readWhole(applier, order, then.name);
      if (result !== null) return { kind: 'impossible', file: then.name, reason: result };
      if (!isRaised && !isSame(applier.counts, then.report)) return OTHER_OUTCOME;
      const record = { ...then, report: { ...then.report, ...applier.counts } };
      this.#commit(applier, mark, () => saveApplied(this.#workshop, record, line.replaces));
      this.#settle(record);
      return DONE;
    });
  }

  #beginBackfill(line: BeganLine, mark: JournalMark): Outcome {
    const then = recordIn(line.began, 'applying', line, null);
    if (!isThere(this.#sourceOf(then, this.#archived.get(line.began) ?? null)))
      return impossible(then, then.name, 'it is no longer in the archive');
    this.#workshop.settling.add(this.#workshop.drop.takenPath(then.number, then.name));
    return this.#commit(null, mark, () => saveFile(this.#workshop.db, then));
  }

  async #readPart(line: PartLine, mark: JournalMark, isRaised: boolean): Promise<Outcome> {
    const record = findFile(this.#workshop.db, line.part);
    if (record?.outcome !== 'applying' || (!isRaised && record.rows_applied !== line.from))
      return impossible(record, `file ${line.part}`, 'what comes before was not applied');
    const path = this.#sourceOf(record, this.#archived.get(line.part) ?? null);
    const wrong = await this.#whyNotThere(record, path);
    if (wrong !== null) return wrong;
    const judged = judgeName(record.name);
    if (judged.kind !== 'export' || judged.file.kind !== 'backfill')
      return impossible(record, record.name, 'it is no backfill');
    const order = backfillOrder(this.#workshop, record, judged.file, path, readAt(line));
    const span = { ...line, from: record.rows_applied };
    return this.#readSpan('part', span, record, { order, mark, isRaised }, (through, counts) =>
      saveFile(this.#workshop.db, withPart(record, through, counts)),
    );
  }

  async #replay(line: ReplayedLine, mark: JournalMark, isRaised: boolean): Promise<Outcome> {
    const record = findFile(this.#workshop.db, line.replayed);
    if (record === null || record.destination === null)
      return impossible(record, `file ${line.replayed}`, 'it is no longer in the archive');
    const path = this.#sourceOf(record, record.destination);
    const wrong = await this.#whyNotThere(record, path);
    if (wrong !== null) return wrong;
    const judged = judgeName(record.name);
    if (judged.kind !== 'export') return impossible(record, record.name, 'it is no export');
    const order = {
      ...replayOrder(this.#workshop, path, judged.file, readAt(line)),
      rows_to_skip: line.from,
    };
    return this.#readSpan('replayed', line, record, { order, mark, isRaised }, () => {});
  }

  async #readSpan(
    kind: 'part' | 'replayed',
    line: PartLine | ReplayedLine,
    record: FileRecord,
    { order, mark, isRaised }: { order: OrderWithoutSession; mark: JournalMark; isRaised: boolean },
    save: (through: number, counts: ApplyCounts) => void,
  ): Promise<Outcome> {
    const doubt = isRaised ? null : this.#whyOtherRules(line.rules, order);
    if (doubt !== null) return doubt;
    const key = `${kind} ${record.number}`;
    return this.#inTransaction(order, async (applier) => {
      const through = await this.#spans.read(
        applier,
        key,
        { ...order, rows_to_skip: line.from },
        line.through,
      );
      if (!isRaised && (through !== line.through || !isSame(applier.counts, line.counts))) {
        this.#spans.drop(key);
        return OTHER_OUTCOME;
      }
      this.#commit(applier, mark, () => save(through, applier.counts));
      return DONE;
    });
  }

  #finishBackfill(line: AppliedLine, mark: JournalMark): Outcome {
    const record = findFile(this.#workshop.db, line.applied);
    if (record === null || record.outcome !== 'applying' || record.rows_applied < line.record.rows_applied)
      return impossible(record, line.record.name, 'not all of it was applied');
    const { finished_at } = line.record;
    const applied: FileRecord = { ...record, outcome: 'applied', finished_at, destination: line.archived };
    this.#spans.drop(`part ${line.applied}`);
    this.#commit(null, mark, () => saveFile(this.#workshop.db, applied));
    this.#settle(applied);
    return DONE;
  }

  async #remove(subscription: number, mark: JournalMark): Promise<Outcome> {
    await removeSubscription(this.#workshop, subscription, () => {}, { kind: 'again', mark });
    return DONE;
  }

  #putAway(line: UnappliedLine, mark: JournalMark): Outcome {
    const record = recordIn(line.unapplied, line.outcome, line, line.moved_to);
    this.#commit(null, mark, () => saveUnapplied(this.#workshop, record, line.replaces));
    this.#settle(record);
    return DONE;
  }

  #setWindows(
    { export: exportName, since }: { export: FileRecord['export'] & string; since: number },
    starts: readonly number[],
    status: 'missing' | 'abandoned',
    mark: JournalMark,
  ): Outcome {
    const { db } = this.#workshop;
    return this.#commit(null, mark, () => {
      for (const window_start of starts) {
        const before = findWindow(db, exportName, window_start);
        if (before !== undefined && before.status !== 'missing') continue;
        setWindow(db, { export: exportName, window_start, status, since, file: null });
      }
    });
  }

  /** Where a file lies: in the archive, or not yet. */
  #sourceOf(record: FileRecord, archived: string | null): string {
    const { drop } = this.#workshop;
    const path = archived === null ? null : join(drop.root, archived);
    return path !== null && isThere(path) ? path : drop.takenPath(record.number, record.name);
  }

  /** @returns null when the file lies there as it was applied */
  async #whyNotThere({ name, sha256 }: FileRecord, path: string): Promise<Outcome | null> {
    if (!isThere(path)) return { kind: 'impossible', file: name, reason: 'it is no longer in the archive' };
    const found = this.#checked.get(path) ?? (await sha256Of(path));
    this.#checked.set(path, found);
    if (found === sha256) return null;
    return { kind: 'impossible', file: name, reason: 'its content is not what was applied' };
  }

  #whyOtherRules(then: Rules, order: OrderWithoutSession): Outcome | null {
    const reason = whyOtherRules(then, rulesOf(this.#workshop, order));
    return reason === null ? null : { kind: 'unproven', reason };
  }

  /** Begins a transaction for `work`, which commits it or says why not. */
  async #inTransaction(
    order: OrderWithoutSession,
    work: (applier: Applier) => Promise<Outcome>,
  ): Promise<Outcome> {
    const applier = this.#workshop.writer.begin(new Set(order.licensed));
    try {
      return await work(applier);
    } finally {
      this.#workshop.writer.rollback();
    }
  }

  #commit(applier: Applier | null, mark: JournalMark, save: () => void): Outcome {
    const { writer } = this.#workshop;
    writer.commit(applier ?? writer.begin(new Set()), save, { kind: 'again', mark });
    return DONE;
  }

  #settle(record: FileRecord): void {
    this.#workshop.settling.add(this.#workshop.drop.takenPath(record.number, record.name));
    settle(this.#workshop, record);
  }
}

const OTHER_OUTCOME: Outcome = {
  kind: 'unproven',
  reason: 'a file came out otherwise than it had before',
};

/** The file that an operation had just taken, and where it was to go; null: it was of none, or of one taken before. */
function takenBy(
  step: Step,
): { number: number; name: string; sha256: string | null; moved: string | null } | null {
  switch (step.kind) {
    case 'applied': {
      const { applied: number, record, sha256, archived: moved, reading } = step.line;
      return reading === undefined ? null : { number, name: record.name, sha256, moved };
    }
    case 'began': {
      const { began: number, record, sha256 } = step.line;
      return { number, name: record.name, sha256, moved: null };
    }
    case 'unapplied': {
      const { unapplied: number, record, sha256, moved_to: moved } = step.line;
      return { number, name: record.name, sha256, moved };
    }
    default:
      return null;
  }
}

function readAt({ read_at }: { readonly read_at: string }): number | undefined {
  return parseInstant(read_at) ?? undefined;
}

function isSame(counts: ApplyCounts, then: Partial<ApplyCounts>): boolean {
  return (['created', 'updated', 'rescored', 'unchanged'] as const).every(
    (name) => counts[name] === (then[name] ?? 0),
  );
}

function impossible(record: FileRecord | null, name: string, reason: string): Outcome {
  return { kind: 'impossible', file: record?.name ?? name, reason };
}
