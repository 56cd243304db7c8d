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

export type Act =
  | {
      readonly kind: 'drop';
      readonly name: string;
      readonly content: Buffer;
      /** Whether it waits there until a later act. */
      readonly waits?: boolean;
      readonly expect: (model: Model) => void;
    }
  | {
      readonly kind: 'command';
      readonly args: (keys: Keys) => readonly string[];
      /** The label of the key that it prints. */
      readonly makes?: string;
      /** What it says where it was carried out before. */
      readonly again?: RegExp;
      readonly expect?: (model: Model) => void;
    }
  | {
      /** Waits until the archive is empty. */
      readonly kind: 'expire';
      readonly expect: (model: Model) => void;
    };

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

/** @param nowMs windows are of the hours before; a day later they would be missing */
export function stagesFrom(nowMs: number): readonly Stage[] {
  const firstMs = Math.floor((nowMs - 8 * HOUR_MS) / WINDOW_MS) * WINDOW_MS;
  const startMs = (window: number) => firstMs + window * WINDOW_MS;
  const row = (article: number, window: number, score: number, more: Row = {}): Row => ({
    subscription_id: 7001,
    source_internal_id: 501,
    article_id: article,
    first_detected_at: formatMs(firstMs),
    last_scored_at: formatMs(startMs(window)),
    exported_at: formatMs(startMs(window)),
    strength_score: score,
    ...more,
  });
  const rows = (first: number, count: number, window: number, more: Row = {}) =>
    Array.from({ length: count }, (_, at) => row(first + at, window, at % 90, more));
  const other = { subscription_id: 7002 };

  function drop(exportName: ExportName, window: number, form: Form, of: readonly Row[], waits = false): Act {
    const content = contentOf(form, of);
    const name = fileName(exportName, startMs(window), form);
    return dropped(name, content, waits, (model) => {
      model.file(content, 'archive');
      model.apply(exportName, of);
    });
  }
  const broken = Buffer.from('{"broken\n');
  const held = rows(300, 5, 3);
  const heldContent = contentOf('csv', held);
  const again = contentOf('ndjson', rows(100, 4, 5));
  const backfill = rows(10_000, ROWS_OF_BACKFILL, 0, other);
  const backfillContent = contentOf('ndjson.zst', backfill);
  const window3 = formatWindowStart(startMs(3));

  return [
    { name: 'install', serves: true, acts: INSTALL },
    {
      name: 'windows',
      serves: true,
      acts: [
        drop('newswire', 0, 'ndjson', [...rows(1, 20, 0), ...rows(50, 6, 0, other), row(80, 0, 40, PRINT)]),
        drop('imagewire', 0, 'csv.gz', rows(1, 8, 0)),
        drop('newswire', 1, 'csv.zst', rows(30, 3, 1)),
      ],
    },
    {
      name: 'correction',
      serves: true,
      acts: [
        drop('newswire', 2, 'ndjson.gz', [
          ...[1, 2, 3].map((article) => row(article, 2, 77)),
          ...rows(31, 3, 2),
        ]),
        // The same window once more, corrected.
        drop('newswire', 2, 'ndjson', [row(1, 3, 78), row(90, 2, 5)]),
      ],
    },
    {
      name: 'failed and held',
      serves: true,
      acts: [
        put(fileName('newswire', startMs(3)), broken, 'failed'),
        put(fileName('newswire', startMs(3), 'csv'), heldContent, 'held'),
        put('newswire.nonsense', Buffer.from('nonsense'), 'refused'),
        drop('newswire', 4, 'ndjson', [row(2, 4, 11)]),
      ],
    },
    {
      name: 'reset',
      serves: true,
      acts: [
        {
          kind: 'command',
          args: () => ['window', 'reset', 'newswire', window3],
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
    {
      name: 'backfill',
      serves: true,
      acts: [
        dropped('newswire.backfill-history.ndjson.zst', backfillContent, false, (model) => {
          model.file(backfillContent, 'archive');
          model.apply('newswire', backfill);
        }),
      ],
    },
    {
      name: 'pause',
      serves: true,
      acts: [
        command('ingest', 'pause'),
        drop('newswire', 5, 'ndjson', rows(100, 4, 5), true),
        command('ingest', 'resume'),
        drop('imagewire', 6, 'csv', rows(20, 2, 6)),
      ],
    },
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
        drop('imagewire', 7, 'ndjson', rows(2, 4, 7)),
        // What was read before, once more.
        put(fileName('newswire', startMs(5)), again, 'archive'),
        command('backup', 'BACKUP'),
      ],
    },
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
      acts: [drop('newswire', 6, 'csv', rows(3, 2, 6))],
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
        drop('newswire', 7, 'ndjson', [row(1, 7, 3)]),
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

function command(...args: string[]): Extract<Act, { kind: 'command' }> {
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

function dropped(name: string, content: Buffer, waits: boolean, expect: (model: Model) => void): Act {
  return { kind: 'drop', name, content, waits, expect };
}

/** A file of which no row is applied. */
function put(name: string, content: Buffer, folder: Folder): Act {
  return dropped(name, content, false, (model) => model.file(content, folder));
}

/** As the commands take it. */
function idOfKey(key: string | undefined): string {
  return key?.split('_')[2] ?? '';
}
