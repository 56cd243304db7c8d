/** The status page: how the appliance stands, at a glance. Pure: facts in, a page out. */
import type { BackupTimes } from '../backup/branch.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import type { AlertDocument } from '../health/alerts.ts';
import type { Health } from '../health/rules.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, parseInstant, WINDOW_MS } from '../time.ts';
import type { ExportWindow, WindowStatus } from '../windows/ledger.ts';
import { countNotRead, type Reach, reachText } from '../windows/reach.ts';
import { type Html, html, type Page } from './html.ts';

export interface Status {
  readonly nowMs: number;
  readonly health: Health;
  readonly alerts: readonly AlertDocument[];
  /** Exports that are switched on. */
  readonly enabled: ReadonlySet<ExportName>;
  /** Those of the last day of which something is known; null when they cannot be read. */
  readonly windows: readonly ExportWindow[] | null;
  /** How far each export was read; null when it cannot be read. */
  readonly reach: Readonly<Record<ExportName, Reach>> | null;
  /** When detections.db was last compared with its log, and how often something was found; null: it was not yet. */
  readonly verified: {
    readonly at: number;
    readonly findings: number;
    readonly not_compared: string | null;
  } | null;
  /** Of the scheduled backup; null: none is scheduled, or it cannot be read. */
  readonly backup: BackupTimes | null;
  /** Rows of each of the last minutes, oldest first. */
  readonly ingested: readonly number[];
  readonly served: readonly number[];
}

const REFRESH_SECONDS = 30;
const WINDOWS_SHOWN = DAY_MS / WINDOW_MS;
const LEGEND: readonly (readonly [WindowStatus | 'cell', string])[] = [
  ['done', 'done'],
  ['failed', 'failed'],
  ['missing', 'missing'],
  ['abandoned', 'abandoned'],
  ['cell', 'nothing known'],
];

export function statusPage(status: Status): Page {
  const { nowMs, health } = status;
  const state = health.alerts.paused === 1 ? 'paused' : health.status;
  const isIncomplete =
    status.reach !== null && Object.values(status.reach).some((one) => countNotRead(one) > 0);
  const shade = state === 'ok' && (health.alerts.open > 0 || isIncomplete) ? 'attention' : state;
  return {
    title: 'Status',
    refreshSeconds: REFRESH_SECONDS,
    body: html`<h1>Status <span class="state ${shade}">${state}</span></h1>
<p class="soft">As of ${formatMs(nowMs)}. ${explanation(health)}</p>
<h2>Exports</h2>
${EXPORT_NAMES.map((name) => exportStrip(name, status))}
<p class="soft">${LEGEND.map(([name, text]) => html`<svg class="swatch" width="12" height="12" aria-hidden="true"><rect class="${name}" width="12" height="12"/></svg> ${text} `)}</p>
<h2>Alerts</h2>
${alertTable(status.alerts)}
<p class="soft">${verifiedText(status)} ${backupText(status)}</p>
<h2>Rows a minute, in the last hour</h2>
<h3>read from exports</h3>
${bars(status.ingested, 'rows read from exports')}
<h3>given to clients</h3>
${bars(status.served, 'rows given to clients')}
`,
  };
}

function explanation({ status, alerts }: Health): string {
  if (alerts.paused === 1) return 'Ingest is paused: wirewatch ingest resume ends that.';
  if (status === 'ok') {
    const { open } = alerts;
    const but = open === 0 ? '' : ` ${open === 1 ? 'An alert is' : `${open} alerts are`} open: see below.`;
    return `GET /v1/health answers 200.${but}`;
  }
  if (alerts.page_worthy > 0) return 'GET /v1/health answers 503: see the alerts.';
  return 'GET /v1/health answers 503: an export has finished no window within the last hour.';
}

function verifiedText({ verified, nowMs }: Status): string {
  if (verified === null) return 'detections.db was not compared with its log yet.';
  const when = `detections.db was last compared with its log ${age(nowMs - verified.at)} ago`;
  if (verified.findings > 0)
    return `${when}: ${verified.findings.toLocaleString('en-US')} differences. Run wirewatch verify to see them.`;
  return verified.not_compared === null
    ? `${when}: no difference.`
    : `${when}, but not completely: ${verified.not_compared}.`;
}

function backupText({ backup, nowMs }: Status): string {
  if (backup === null) return '';
  const { backedUpMs, rehearsedMs } = backup;
  if (backedUpMs === null) return 'There is no backup yet.';
  const rehearsed =
    rehearsedMs === null ? 'was never rehearsed' : `was last rehearsed ${age(nowMs - rehearsedMs)} ago`;
  return `The backup is of ${age(nowMs - backedUpMs)} ago, and a restore from it ${rehearsed}.`;
}

function exportStrip(name: ExportName, { nowMs, enabled, windows, reach }: Status): Html {
  if (!enabled.has(name)) return html`<p><strong>${name}</strong> is switched off.</p>\n`;
  const own = reach?.[name];
  const ms = parseInstant(own?.newest_done ?? '');
  const ago = ms === null ? '' : `, ${age(nowMs - ms)} ago`;
  const reached = own === undefined ? 'how far it was read is not known' : reachText(own, ago);
  const strip =
    windows === null
      ? html`<p>The windows cannot be read.</p>`
      : windowStrip(
          windows.filter((window) => window.export === name),
          nowMs,
        );
  return html`<p><strong>${name}</strong>: ${reached}</p>\n${strip}\n`;
}

const CELL = 6;
const STRIP_HEIGHT = 22;

/** A cell for each window of the last day, the present one last. */
function windowStrip(windows: readonly ExportWindow[], nowMs: number): Html {
  const status = new Map(windows.map((window) => [window.window_start, window.status]));
  const last = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  const starts = Array.from(
    { length: WINDOWS_SHOWN },
    (_, at) => last - (WINDOWS_SHOWN - 1 - at) * WINDOW_MS,
  );
  const cells = starts.map((start, at) => {
    const known = status.get(start);
    return html`<rect class="${known ?? 'cell'}" x="${at * CELL}" width="${CELL - 1}" height="${STRIP_HEIGHT}"><title>${formatMs(start)}: ${known ?? 'nothing known'}</title></rect>`;
  });
  const hours = starts.flatMap((start, at) => {
    const isLabelled = start % (6 * HOUR_MS) === 0;
    return isLabelled ? [html`<text x="${at * CELL}" y="${STRIP_HEIGHT + 13}">${clock(start)}</text>`] : [];
  });
  return html`<svg viewBox="0 0 ${WINDOWS_SHOWN * CELL} ${STRIP_HEIGHT + 16}" role="img" aria-label="windows of the last day">${cells}${hours}</svg>`;
}

const BAR = 14;
const BARS_HEIGHT = 90;

function bars(rows: readonly number[], what: string): Html {
  const most = Math.max(...rows, 1);
  const rects = rows.map((count, at) => {
    const height = Math.round((count / most) * BARS_HEIGHT);
    const minutes = rows.length - 1 - at;
    return html`<rect class="bar" x="${at * BAR}" y="${14 + BARS_HEIGHT - height}" width="${BAR - 2}" height="${height}"><title>${count} rows, ${minutes === 0 ? 'this minute' : `${minutes} minutes ago`}</title></rect>`;
  });
  const width = rows.length * BAR;
  const base = 14 + BARS_HEIGHT;
  return html`<svg viewBox="0 0 ${width} ${base + 16}" role="img" aria-label="${what}, for each minute"><text x="0" y="10">${Math.max(...rows, 0)} at most</text>${rects}<line class="axis" x1="0" x2="${width}" y1="${base}" y2="${base}"/><text x="0" y="${base + 13}">an hour ago</text><text x="${width}" y="${base + 13}" text-anchor="end">now</text></svg>`;
}

function alertTable(alerts: readonly AlertDocument[]): Html {
  if (alerts.length === 0) return html`<p>None is open.</p>`;
  const rows = alerts.map(
    ({ name, page_worthy, since, detail, what_to_do }) =>
      html`<tr><td class="${page_worthy ? 'page-worthy' : ''}">${name}${page_worthy ? ' (needs someone now)' : ''}</td><td>${since}</td><td>${detail}<br><span class="soft">${what_to_do}</span></td></tr>\n`,
  );
  return html`<table>
<thead><tr><th>Alert</th><th>Since</th><th>What, and what to do</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}

function clock(ms: number): string {
  return formatMs(ms).slice(11, 16);
}

/** `7 minutes`, `3 hours`, `2 days`. */
function age(ms: number): string {
  const units = [
    [DAY_MS, 'days'],
    [HOUR_MS, 'hours'],
    [MINUTE_MS, 'minutes'],
  ] as const;
  const [unit, name] = units.find(([length]) => ms >= 2 * length) ?? [MINUTE_MS, 'minutes'];
  return `${Math.max(0, Math.floor(ms / unit))} ${name}`;
}
