/**
 * A scenario in stages, each from a start to a stop: windows, a correction, a failed and a held file, a reset, a
 * backfill in several transactions, a pause, a replay, keys created, rotated and revoked, backups, a checkpoint, closed
 * segments, a scrub, a rebuilt database, a restore, a compaction, a removed subscription, and expired archive files; then
 * a copy for which transactions wait, a second machine that follows it, and its promotion.
 */
import type { ExportName } from '../../../src/detection/content-type.ts';
import type { Form } from '../../../src/exports/file-name.ts';
import { formatMs, formatWindowStart, HOUR_MS, WINDOW_MS } from '../../../src/time.ts';
import { contentOf, fileName, idOf, newRow, type Row } from '../../support/export-files.ts';
import type { Folder, Model } from './model.ts';

/** Keys by the labels of this file. */
export type Keys = Readonly<Record<string, string>>;

export interface Drop {
  readonly kind: 'drop';
  readonly name: string;
  readonly content: Buffer;
  /** The detections of a good file. */
  readonly ids: readonly string[];
  /** Whether the file waits in the drop folder until a later step. */
  readonly waits?: boolean;
  readonly expect: (model: Model) => void;
}

export interface Command {
  readonly kind: 'command';
  readonly args: (keys: Keys) => readonly string[];
  /** The label of the key that it prints. */
  readonly printsKey?: string;
  /** Its message if it has already succeeded. */
  readonly ifRepeated?: RegExp;
  readonly expect?: (model: Model) => void;
}

/** Waits until the archive is empty, also according to the records; or until the standby has what the writer has. */
interface Wait {
  readonly kind: 'expire' | 'follow';
  readonly expect?: (model: Model) => void;
}

export type Step = Drop | Command | Wait;

/** `writer` keeps a copy; `standby` follows it, on a second machine; `successor` is that machine once it is promoted. */
export type Role = 'alone' | 'writer' | 'standby' | 'successor';

export interface Stage {
  readonly name: string;
  /** Whether the appliance is running; otherwise commands do the work themselves. */
  readonly serves: boolean;
  /** Of the machine that the stage runs on; `alone` unless given. */
  readonly role?: Role;
  readonly settings?: Readonly<Record<string, string>>;
  /** Files of the data folder to delete before the stage. */
  readonly without?: readonly string[];
  readonly steps: readonly Step[];
}

const ROWS_OF_BACKFILL = 1300;
const PRINT = { article_print: true, article_url: 'https://print.example.com/a' };
const REMOVED = 7002;
/** Whether a detection is of the subscription that is removed in the end. */
export const isRemoved = (id: string) => id.split('.')[1] === `${REMOVED}`;
const OTHER = { subscription_id: REMOVED };

/** @param nowMs the windows are in the eight hours before it; after a day they would count as missing */
export function stagesFrom(nowMs: number): readonly Stage[] {
  const exports = exportsFrom(Math.floor((nowMs - 8 * HOUR_MS) / WINDOW_MS) * WINDOW_MS);
  return [
    serving('install', INSTALL),
    ...windowStages(exports),
    ...backfillStages(exports),
    ...keyAndBackupStages(exports),
    ...repairStages(exports),
    ...machineStages(exports),
  ];
}

/** The only ones with a role: of two machines. */
function machineStages(exports: Exports): readonly Stage[] {
  const window = (number: number) => exports.drop('imagewire', number, 'csv', exports.rows(40, 9, number));
  return [
    serving('shipping', [window(8), makeKey('shipped', '7001')], { role: 'writer' }),
    stopped('second machine', [command('restore', 'PLACE')], { role: 'standby' }),
    serving('shipping again', [window(9), command('compact')], { role: 'writer' }),
    serving('following', [{ kind: 'follow' }], { role: 'standby' }),
    serving('taking over', [command('promote'), window(10)], { role: 'successor' }),
  ];
}

type Exports = ReturnType<typeof exportsFrom>;

/** Creates export files of numbered windows. @param firstMs start of window 0 */
function exportsFrom(firstMs: number) {
  const startMs = (window: number) => firstMs + window * WINDOW_MS;
  const row = (article: number, window: number, score: number, more: Row = {}) =>
    newRow({
      article_id: article,
      first_detected_at: formatMs(firstMs),
      last_scored_at: formatMs(startMs(window)),
      exported_at: formatMs(startMs(window)),
      strength_score: score,
      ...more,
    });
  const name = (exportName: ExportName, window: number, form: Form = 'ndjson') =>
    fileName(exportName, startMs(window), form);
  return {
    startMs,
    row,
    rows: (first: number, count: number, window: number, more: Row = {}) =>
      Array.from({ length: count }, (_, at) => row(first + at, window, at % 90, more)),
    name,
    /** A good file. */
    drop: (exportName: ExportName, window: number, form: Form, rows: readonly Row[]) =>
      dropped(name(exportName, window, form), contentOf(form, rows), 'archive', rows),
  };
}

/** Windows that are done, corrected, failed, held and reset. */
function windowStages(exports: Exports): Stage[] {
  const broken = Buffer.from('{"broken\n');
  const held = exports.rows(300, 5, 3);
  return [
    serving('windows', [
      exports.drop('newswire', 0, 'ndjson', [
        ...exports.rows(1, 20, 0),
        ...exports.rows(50, 6, 0, OTHER),
        exports.row(80, 0, 40, PRINT),
      ]),
      exports.drop('imagewire', 0, 'csv.gz', exports.rows(1, 8, 0)),
      exports.drop('newswire', 1, 'csv.zst', exports.rows(30, 3, 1)),
    ]),
    serving('correction', [
      exports.drop('newswire', 2, 'ndjson.gz', [
        ...[1, 2, 3].map((article) => exports.row(article, 2, 77)),
        ...exports.rows(31, 3, 2),
      ]),
      // The same window once more, corrected.
      exports.drop('newswire', 2, 'ndjson', [exports.row(1, 3, 78), exports.row(90, 2, 5)]),
    ]),
    serving('failed, held and reset', [
      dropped(exports.name('newswire', 3), broken, 'failed'),
      dropped('newswire.nonsense', Buffer.from('nonsense'), 'refused'),
      exports.drop('newswire', 4, 'ndjson', [exports.row(2, 4, 11)]),
      {
        ...exports.drop('newswire', 3, 'csv', held),
        waits: true,
        expect: (model) => model.file(contentOf('csv', held), 'archive'),
      },
      {
        ...command('window', 'reset', 'newswire', formatWindowStart(exports.startMs(3))),
        ifRepeated: /done/,
        expect(model) {
          // Its window is done, so the failed file may be in either folder.
          model.move(broken, 'archive', 'failed');
          model.apply('newswire', held);
        },
      },
    ]),
  ];
}

function backfillStages(exports: Exports): Stage[] {
  const rows = exports.rows(10_000, ROWS_OF_BACKFILL, 0, OTHER);
  const content = contentOf('ndjson.zst', rows);
  return [
    serving('backfill', [dropped('newswire.backfill-history.ndjson.zst', content, 'archive', rows)]),
    serving('pause', [
      command('ingest', 'pause'),
      { ...exports.drop('newswire', 5, 'ndjson', exports.rows(100, 4, 5)), waits: true },
      command('ingest', 'resume'),
      exports.drop('imagewire', 6, 'csv', exports.rows(20, 2, 6)),
    ]),
  ];
}

function keyAndBackupStages(exports: Exports): Stage[] {
  return [
    serving('keys', [
      makeKey('late'),
      {
        kind: 'command',
        args: ({ late }) => ['key', 'rotate', idOfKey(late), '--overlap', '0', '--json'],
        printsKey: 'rotated',
        ifRepeated: /expired|rotated|cannot/,
        expect: (model) => void model.keys.set('late', false).set('rotated', true),
      },
      makeKey('lost'),
      {
        kind: 'command',
        args: ({ lost }) => ['key', 'revoke', idOfKey(lost), '--yes'],
        expect: (model) => void model.keys.set('lost', false),
      },
    ]),
    serving('backup', [command('backup', 'BACKUP')]),
    serving('backup again', [
      exports.drop('imagewire', 7, 'ndjson', exports.rows(2, 4, 7)),
      // The content of an earlier file again.
      dropped(exports.name('newswire', 5), contentOf('ndjson', exports.rows(100, 4, 5)), 'archive'),
      command('backup', 'BACKUP'),
    ]),
  ];
}

/** A replay, a scrub, a rebuilt database, a restore, a removal, and deleted archive files. */
function repairStages(exports: Exports): Stage[] {
  return [
    stopped('replay', [
      command('account', 'set', 'agency', '--print-metadata', 'on'),
      { ...command('ingest', 'replay'), expect: (model) => model.showPrint() },
    ]),
    serving('scrub', [command('verify')], { settings: { WIREWATCH_VERIFY_EVERY_HOURS: '1' } }),
    serving('made anew', [exports.drop('newswire', 6, 'csv', exports.rows(3, 2, 6))], {
      without: ['detections.db'],
    }),
    // A backup that has all of the log: nothing is lost.
    stopped('restore', [command('backup', 'BACKUP'), command('restore', 'BACKUP', '--replace')]),
    stopped('compaction', [command('compact')]),
    serving('removal', [
      {
        ...command('subscription', 'remove', `${REMOVED}`, '--yes'),
        ifRepeated: /subscription 7002 does not exist/,
        expect: (model) => model.remove(REMOVED),
      },
      exports.drop('newswire', 7, 'ndjson', [exports.row(1, 7, 3)]),
      command('backup', 'BACKUP'),
    ]),
    serving('retention', [{ kind: 'expire', expect: (model) => model.expire() }], {
      settings: { WIREWATCH_INGEST_ARCHIVE_DAYS: '1' },
    }),
  ];
}

const INSTALL: readonly Step[] = [
  command('account', 'add', 'agency', '--name', 'Agency'),
  ...['7001', '7002'].map((id) => command('subscription', 'add', id, '--account', 'agency')),
  makeKey('reader'),
  makeKey('follower', '7001'),
].map((step) => ({ ...step, ifRepeated: /already exists/ }));

type More = Partial<Omit<Stage, 'name' | 'serves' | 'steps'>>;

function serving(name: string, steps: readonly Step[], more: More = {}): Stage {
  return { name, serves: true, steps, ...more };
}

function stopped(name: string, steps: readonly Step[], more: More = {}): Stage {
  return { name, serves: false, steps, ...more };
}

function command(...args: string[]): Command {
  return { kind: 'command', args: () => args };
}

function makeKey(label: string, subscriptions = '7001,7002'): Step {
  const terms = ['--account', 'agency', '--subscriptions', subscriptions, '--scopes', 'detections:read'];
  return {
    kind: 'command',
    args: () => ['key', 'create', ...terms, '--name', label, '--json'],
    printsKey: label,
    expect: (model) => void model.keys.set(label, true),
  };
}

/** @param folder where the file ends; @param rows those that are applied */
function dropped(name: string, content: Buffer, folder: Folder, rows: readonly Row[] = []): Drop {
  const exportName = name.startsWith('imagewire') ? 'imagewire' : 'newswire';
  return {
    ...{ kind: 'drop', name, content, ids: rows.map((row) => idOf(row, exportName)) },
    expect(model) {
      model.file(content, folder);
      model.apply(exportName, rows);
    },
  };
}

/** The id of a key, as commands expect it. */
function idOfKey(key: string | undefined): string {
  return key?.split('_')[2] ?? '';
}
