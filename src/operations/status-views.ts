/** The reads that are views of the status document (status.ts): `status`, `alert list`, `ingest status`, as text. */
import { counted, grouped } from '../counted.ts';
import { firstErrorText } from '../exports/error-groups.ts';
import type { AlertDocument } from '../health/alert-texts.ts';
import { type FileDocument, fileDocument, newestFiles } from '../ingest/files/file-record.ts';
import { pasted } from '../setup/shell.ts';
import { details, documentTable, joined } from '../text-layout.ts';
import { type Context, reading } from './operation.ts';
import type { Status } from './status.ts';
import { ingestLines, ingestOf, keysText, statusIngestLines, systemLines } from './status-lines.ts';

const FILES_LISTED = 10;

/** Loaded with the first status: most commands start without it. */
const readStatus = async (context: Context): Promise<Status> =>
  (await import('./status.ts')).readStatus(context);

export const STATUS = reading('status', {
  summary: 'show the current state on one screen: exports, files, alerts, keys, disks, copy',
  examples: ['status', 'status --watch', 'status --json'],
  readsDrop: true,
  run: async (context) => ({ value: await readStatus(context) }),
  text: (status) => statusText(status),
});

/** An alert, or what stands in place of those that only a running Wirewatch knows. */
type Listed = AlertDocument | ReturnType<typeof notRunning>;

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
});

export const INGEST_STATUS = reading('ingest status', {
  summary: 'show whether Wirewatch is running, which files are waiting, and the files processed last',
  examples: ['ingest status', 'ingest status --json'],
  readsDrop: true,
  run: async (context) => ({ value: await readIngest(context) }),
  text: ingestText,
});

/** The part of the status that it shows, with the files processed last, the newest first. */
async function readIngest(context: Context) {
  const status = await readStatus(context);
  const { running, not_applied } = status;
  const ingest = ingestOf(status);
  const db = ingest.unreadable === null ? context.detections() : null;
  const files = db === null ? [] : newestFiles(db, FILES_LISTED).map(fileDocument);
  return { running, ...ingest, files, not_applied };
}

function notRunning({ folder, config }: Context) {
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
  return alerts
    .flatMap(({ name, page_worthy, since, detail, what_to_do }) => [
      `${page_worthy ? 'NOW  ' : 'later'}  ${alertText(name, since, detail)}`,
      `    -> ${what_to_do}`,
    ])
    .join('\n');
}

const alertText = (name: string, at: string | null, detail: string): string =>
  `${name}${at === null ? '' : `, since ${at}`}: ${detail}`;

const FILES_SHOWN = 3;

export function statusText(status: Status): string {
  const { settings } = status;
  const todo = settings?.what_to_do;
  const alerts = status.alerts.map(
    ({ name, page_worthy, since: at, detail }) =>
      `  ${page_worthy ? 'NOW' : '   '}  ${alertText(name, at, detail)}`,
  );
  const files = status.not_applied
    .slice(0, FILES_SHOWN)
    .map((file) => `  ${file.outcome.padEnd(8)}${notAppliedText(file, status)}`);
  const isPartial = status.running
    ? ''
    : ' (only those that follow from the databases, because Wirewatch is not running)';
  return joined('\n', [
    details([
      ['Wirewatch', applianceText(status)],
      ...(settings && todo ? [['settings', `${settingsText(settings)}. ${todo}`] as const] : []),
      ...statusIngestLines(status),
      ['keys', keysText(status)],
      ...systemLines(status),
    ]),
    '',
    `Alerts${isPartial}`,
    ...(alerts.length === 0 ? ['  none'] : alerts),
    ...(files.length === 0 ? [] : ['', 'Latest files that were not applied', ...files]),
    '',
  ]);
}

function applianceText({ running, url }: Pick<Status, 'running' | 'url'>): string {
  if (!running) return 'not running; start it with: wirewatch serve';
  return url === null ? 'running' : `running, listening on ${url}`;
}

/** What is wrong with the configuration, or which settings of it are not in use yet. */
export const settingsText = ({ problem, changed }: NonNullable<Status['settings']>): string =>
  problem ?? `others than configured: ${changed.map(({ name }) => name).join(', ')}`;

function notAppliedText({ file, report }: Status['not_applied'][number], { alerts }: Status): string {
  const reason = report.reason ?? 'see: wirewatch ingest status';
  // Not repeated if an alert above gives it.
  return alerts.some(({ detail }) => detail.includes(reason)) ? file : `${file}: ${reason}`;
}

function ingestText(status: Awaited<ReturnType<typeof readIngest>>): string {
  const shown = new Set(status.files.map(({ number }) => number));
  const failures = status.not_applied.filter(({ number }) => !shown.has(number));
  return joined('\n\n', [
    details([['Wirewatch', applianceText({ ...status, url: null })], ...ingestLines(status, null)]),
    status.held_files.length > 0 &&
      `Files that are held until you reset or accept their window (${grouped(status.held)}):\n${documentTable(status.held_files, ['file', 'reason', 'what_to_do'])}`,
    failures.length > 0 &&
      `Files that were not applied in the last 24 hours:\n${documentTable(failures.toReversed().map((file) => ({ ...fileRow(file), what_to_do: file.what_to_do })))}`,
    status.files.length > 0 && `Files processed last:\n${fileTable(status.files)}`,
  ]);
}

function fileRow({ number, file, outcome, report }: FileDocument) {
  const { rows, created, updated, reason, urls_withheld = 0 } = report;
  // Why it was not applied, with its first error, or what its rows have lost.
  const why = firstErrorText(report) ?? reason ?? (urls_withheld > 0 ? withheldText(urls_withheld) : null);
  return { number, file, outcome, rows, created, updated, why };
}

export const withheldText = (rows: number): string =>
  `${counted(rows, 'row')} of print articles without article.url, because the account has no licence`;

export const SHOW_URLS =
  'To show it, run: wirewatch account set ID --print-metadata on; for files that were read before, then: wirewatch ingest replay';

/** Files in a table, the newest last. */
export function fileTable(files: readonly FileDocument[]): string {
  const isWithheld = files.some(({ report }) => (report.urls_withheld ?? 0) > 0);
  return `${documentTable(files.toReversed().map(fileRow))}${isWithheld ? `\n${SHOW_URLS}` : ''}`;
}
