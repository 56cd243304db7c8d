/** The reads that are views of the status document (status.ts), and how a terminal shows them. */
import { Type } from '@sinclair/typebox';
import { integer } from '../config/option-values.ts';
import type { AlertDocument } from '../health/alert-texts.ts';
import { type FileDocument, fileDocument, newestFiles } from '../ingest/file-record.ts';
import { pasted } from '../setup/shell.ts';
import { table, terminalWidth, WIDTH_DEFAULT } from '../text-layout.ts';
import { value } from './member.ts';
import { type Context, reading } from './operation.ts';
import { readStatus } from './status.ts';
import { type IngestStatus, ingestText, statusText } from './status-text.ts';

const FILES_DEFAULT = 10;
const FILES_MAX = 1000;
const WIDTH_OF_PIPE = 100;

export const STATUS = reading('status', {
  summary: 'show the current state on one screen: exports, files, alerts, keys, disks, backup',
  examples: ['status', 'status --watch', 'status --json'],
  readsDrop: true,
  run: async (context) => ({ value: await readStatus(context) }),
  text: (status) => statusText(status, terminalWidth() ?? WIDTH_OF_PIPE),
});

/** An alert, or what stands in place of those that only a running Wirewatch knows. */
type Listed = Omit<AlertDocument, 'name' | 'since'> & {
  readonly name: string;
  /** Null: not known. */
  readonly since: string | null;
};

export const ALERT_LIST = reading('alert list', {
  summary: 'list the open alerts, urgent ones first. Exit code 1 if Wirewatch is not running',
  examples: ['alert list', 'alert list --json'],
  async run(context) {
    const { alerts } = await readStatus(context);
    const isKnown = context.live !== null;
    const listed: readonly Listed[] = isKnown ? alerts : [notRunning(context), ...alerts];
    return { value: listed, failed: !isKnown };
  },
  text: alertsText,
  colours: { NOW: 'red' },
});

export const INGEST_STATUS = reading('ingest status', {
  summary: 'show whether Wirewatch is running, which files are waiting, and the files processed last',
  members: {
    files: value(integer(0, FILES_MAX), {
      hint: `how many of the last files to show (default: ${FILES_DEFAULT})`,
      placeholder: 'number',
      schema: Type.Integer({ minimum: 0, maximum: FILES_MAX }),
    }),
  },
  examples: ['ingest status', 'ingest status --files 100 --json'],
  readsDrop: true,
  async run(context, { files = FILES_DEFAULT }) {
    const { running, health, ingest, exports, not_applied, database } = await readStatus(context);
    const { paused_since } = health;
    const { unreadable } = database;
    const newest = unreadable === null ? newestOf(context, files) : [];
    const value: IngestStatus = {
      running,
      paused_since,
      unreadable,
      ...ingest,
      exports,
      files: newest,
      not_applied,
    };
    return { value };
  },
  text: ingestText,
});

function newestOf({ detections }: Context, files: number): FileDocument[] {
  const db = detections();
  return db === null ? [] : newestFiles(db, files).map(fileDocument);
}

function notRunning({ folder, config }: Context): Listed {
  const file = config.configFile === null ? '' : ` --config ${pasted(config.configFile)}`;
  return {
    name: 'appliance not running',
    page_worthy: true,
    since: null,
    detail: `Wirewatch is not running on ${folder.root}, so only alerts that follow from its databases are listed`,
    what_to_do: `Start it with: wirewatch serve --data ${pasted(folder.root)}${file}`,
  };
}

function alertsText(alerts: readonly Listed[]): string {
  if (alerts.length === 0) return 'No alerts are open.';
  return table(
    alerts,
    [
      { title: 'URGENCY', value: ({ page_worthy }) => (page_worthy ? 'NOW' : 'later') },
      { title: 'ALERT', value: ({ name }) => name },
      { title: 'SINCE', value: ({ since }) => since },
      { title: 'DETAIL', value: ({ detail }) => detail },
      { title: 'WHAT TO DO', value: ({ what_to_do }) => what_to_do },
    ],
    // Sentences do not fit side by side, so a width applies even without a terminal.
    terminalWidth() ?? WIDTH_DEFAULT,
  );
}
