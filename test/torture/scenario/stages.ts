/**
 * A life of the program in stages, each from a start to a stop: windows, a correction, a failed and a held file, a reset,
 * a backfill in parts, a pause, a replay, keys made, rotated and revoked, backups, a checkpoint, segments that close, a
 * scrub, a database that is made anew, a restore, a removed subscription, and an archive that grows old.
 */
import type { ExportName } from '../../../src/detection/content-type.ts';
import type { Form } from '../../../src/ingest/format/file-name.ts';
import { formatMs, formatWindowStart, HOUR_MS, WINDOW_MS } from '../../../src/time.ts';
import { contentOf, fileName, type Row } from '../../support/export-files.ts';
import type { Folder, Model } from './model.ts';

/** Keys by the labels of this file. */
export type Keys = Readonly<Record<string, string>>;

export interface Drop {
  readonly kind: 'drop';
  readonly name: string;
  readonly content: Buffer;
  /** Whether it waits in the drop folder until a later act. */
  readonly waits?: boolean;
  readonly expect: (model: Model) => void;
}

export interface Command {
  readonly kind: 'command';
  readonly args: (keys: Keys) => readonly string[];
  /** The label of the key that it prints. */
  readonly makes?: string;
  /** What it says if it was carried out before. */
  readonly again?: RegExp;
  readonly expect?: (model: Model) => void;
}

/** Waits until the archive is empty. */
interface Expire {
  readonly kind: 'expire';
  readonly expect: (model: Model) => void;
}

export type Act = Drop | Command | Expire;

export interface Stage {
  readonly name: string;
  /** Whether the appliance runs meanwhile; commands do the work themselves otherwise. */
  readonly serves: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Files of the data folder that are gone before it begins. */
  readonly without?: readonly string[];
  readonly acts: readonly Act[];
}

const ROWS_OF_BACKFILL = 1300;
const PRINT = { article_print: true, article_url: 'https://print.example.com/a' };
const OTHER = { subscription_id: 7002 };

/** @param nowMs windows are of the hours before; a day later they would be missing */
export function stagesFrom(nowMs: number): readonly Stage[] {
  const exports = new Exports(Math.floor((nowMs - 8 * HOUR_MS) / WINDOW_MS) * WINDOW_MS);
  return [
    { name: 'install', serves: true, acts: INSTALL },
    ...windowStages(exports),
    ...backfillStages(exports),
    ...keyAndBackupStages(exports),
    ...repairStages(exports),
  ];
}

/** Export files of windows by their number. */
class Exports {
  readonly #firstMs: number;

  /** @param firstMs start of window 0 */
  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  startMs(window: number): number {
    return this.#firstMs + window * WINDOW_MS;
  }

  row(article: number, window: number, score: number, more: Row = {}): Row {
    return {
      subscription_id: 7001,
      source_internal_id: 501,
      article_id: article,
      first_detected_at: formatMs(this.#firstMs),
      last_scored_at: formatMs(this.startMs(window)),
      exported_at: formatMs(this.startMs(window)),
      strength_score: score,
      ...more,
    };
  }

  rows(first: number, count: number, window: number, more: Row = {}): Row[] {
    return Array.from({ length: count }, (_, at) => this.row(first + at, window, at % 90, more));
  }

  name(exportName: ExportName, window: number, form: Form = 'ndjson'): string {
    return fileName(exportName, this.startMs(window), form);
  }

  /** A good file. */
  drop(exportName: ExportName, window: number, form: Form, rows: readonly Row[]): Drop {
    const content = contentOf(form, rows);
    return dropped(this.name(exportName, window, form), content, (model) => {
      model.file(content, 'archive');
      model.apply(exportName, rows);
    });
  }
}

/** Windows that are read, corrected, failed, held and reset. */
function windowStages(exports: Exports): Stage[] {
  const broken = Buffer.from('{"broken\n');
  const held = exports.rows(300, 5, 3);
  const heldContent = contentOf('csv', held);
  return [
    {
      name: 'windows',
      serves: true,
      acts: [
        exports.drop('newswire', 0, 'ndjson', [
          ...exports.rows(1, 20, 0),
          ...exports.rows(50, 6, 0, OTHER),
          exports.row(80, 0, 40, PRINT),
        ]),
        exports.drop('imagewire', 0, 'csv.gz', exports.rows(1, 8, 0)),
        exports.drop('newswire', 1, 'csv.zst', exports.rows(30, 3, 1)),
      ],
    },
    {
      name: 'correction',
      serves: true,
      acts: [
        exports.drop('newswire', 2, 'ndjson.gz', [
          ...[1, 2, 3].map((article) => exports.row(article, 2, 77)),
          ...exports.rows(31, 3, 2),
        ]),
        // The same window once more, corrected.
        exports.drop('newswire', 2, 'ndjson', [exports.row(1, 3, 78), exports.row(90, 2, 5)]),
      ],
    },
    {
      name: 'failed and held',
      serves: true,
      acts: [
        put(exports.name('newswire', 3), broken, 'failed'),
        put(exports.name('newswire', 3, 'csv'), heldContent, 'held'),
        put('newswire.nonsense', Buffer.from('nonsense'), 'refused'),
        exports.drop('newswire', 4, 'ndjson', [exports.row(2, 4, 11)]),
      ],
    },
    {
      name: 'reset',
      serves: true,
      acts: [
        {
          kind: 'command',
          args: () => ['window', 'reset', 'newswire', formatWindowStart(exports.startMs(3))],
          again: /done/,
          expect(model) {
            model.move(heldContent, 'archive');
            // Its window was read: where it lies does not matter to that.
            model.move(broken, 'archive', 'failed');
            model.apply('newswire', held);
          },
        },
      ],
    },
  ];
}

function backfillStages(exports: Exports): Stage[] {
  const rows = exports.rows(10_000, ROWS_OF_BACKFILL, 0, OTHER);
  const content = contentOf('ndjson.zst', rows);
  return [
    {
      name: 'backfill',
      serves: true,
      acts: [
        dropped('newswire.backfill-history.ndjson.zst', content, (model) => {
          model.file(content, 'archive');
          model.apply('newswire', rows);
        }),
      ],
    },
    {
      name: 'pause',
      serves: true,
      acts: [
        command('ingest', 'pause'),
        { ...exports.drop('newswire', 5, 'ndjson', exports.rows(100, 4, 5)), waits: true },
        command('ingest', 'resume'),
        exports.drop('imagewire', 6, 'csv', exports.rows(20, 2, 6)),
      ],
    },
  ];
}

function keyAndBackupStages(exports: Exports): Stage[] {
  return [
    {
      name: 'keys',
      serves: true,
      acts: [
        makeKey('late'),
        {
          kind: 'command',
          args: ({ late }) => ['key', 'rotate', idOfKey(late), '--overlap', '0', '--json'],
          makes: 'rotated',
          again: /expired|rotated|cannot/,
          expect: (model) => void model.keys.set('late', false).set('rotated', true),
        },
        makeKey('lost'),
        {
          kind: 'command',
          args: ({ lost }) => ['key', 'revoke', idOfKey(lost), '--yes'],
          expect: (model) => void model.keys.set('lost', false),
        },
      ],
    },
    { name: 'backup', serves: true, acts: [command('backup', 'BACKUP')] },
    {
      name: 'backup again',
      serves: true,
      acts: [
        exports.drop('imagewire', 7, 'ndjson', exports.rows(2, 4, 7)),
        // What was read before, once more.
        put(exports.name('newswire', 5), contentOf('ndjson', exports.rows(100, 4, 5)), 'archive'),
        command('backup', 'BACKUP'),
      ],
    },
  ];
}

/** A replay, a scrub, a database made anew, a restore, a removal, and files that are deleted. */
function repairStages(exports: Exports): Stage[] {
  return [
    {
      name: 'replay',
      serves: false,
      acts: [
        command('account', 'set', 'agency', '--print-metadata', 'on'),
        { ...command('ingest', 'replay'), expect: (model) => model.showPrint() },
      ],
    },
    {
      name: 'scrub',
      serves: true,
      settings: { WIREWATCH_VERIFY_EVERY_HOURS: '1' },
      acts: [command('verify')],
    },
    {
      name: 'made anew',
      serves: true,
      without: ['detections.db'],
      acts: [exports.drop('newswire', 6, 'csv', exports.rows(3, 2, 6))],
    },
    // An older backup, continued by the log that is there: nothing is lost.
    { name: 'restore', serves: false, acts: [command('restore', 'BACKUP', '--replace')] },
    {
      name: 'removal',
      serves: true,
      acts: [
        {
          kind: 'command',
          args: () => ['subscription', 'remove', '7002', '--yes'],
          again: /subscription 7002 does not exist/,
          expect: (model) => model.remove(7002),
        },
        exports.drop('newswire', 7, 'ndjson', [exports.row(1, 7, 3)]),
        command('backup', 'BACKUP'),
      ],
    },
    {
      name: 'retention',
      serves: true,
      settings: { WIREWATCH_INGEST_ARCHIVE_DAYS: '1' },
      acts: [{ kind: 'expire', expect: (model) => model.expire() }],
    },
  ];
}

const INSTALL: readonly Act[] = [
  command('account', 'add', 'agency', '--name', 'Agency'),
  ...['7001', '7002'].map((id) => command('subscription', 'add', id, '--account', 'agency')),
  makeKey('reader'),
].map((act) => ({ ...act, again: /already exists/ }));

function command(...args: string[]): Command {
  return { kind: 'command', args: () => args };
}

function makeKey(label: string): Act {
  const terms = ['--account', 'agency', '--subscriptions', '7001,7002', '--scopes', 'detections:read'];
  return {
    kind: 'command',
    args: () => ['key', 'create', ...terms, '--name', label, '--json'],
    makes: label,
    expect: (model) => void model.keys.set(label, true),
  };
}

function dropped(name: string, content: Buffer, expect: (model: Model) => void): Drop {
  return { kind: 'drop', name, content, expect };
}

/** A file of which no row is applied. */
function put(name: string, content: Buffer, folder: Folder): Act {
  return dropped(name, content, (model) => model.file(content, folder));
}

/** As the commands take it. */
function idOfKey(key: string | undefined): string {
  return key?.split('_')[2] ?? '';
}
