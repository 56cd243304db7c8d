/** What is served where, for those who run the appliance. */
import { backupTimes } from '../backup/branch.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { alertDocument } from '../health/alerts.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import type { CommandSummary } from '../manual/commands.ts';
import { TOPICS } from '../manual/topics.ts';
import { openApiDocument } from '../openapi/document.ts';
import { consoleFiles } from '../packed.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS } from '../time.ts';
import { windowsBetween } from '../windows/ledger.ts';
import { readReach } from '../windows/reach.ts';
import { document, html, type Page, STYLE } from './html.ts';
import { manualHtml } from './manual-html.ts';
import type { Metrics } from './metrics.ts';
import type { StandingSources } from './standing.ts';
import { type Status, statusPage } from './status-page.ts';

export interface PageSources extends StandingSources {
  readonly metrics: Metrics;
  /** For the manual's topic that lists them. */
  readonly commands: readonly CommandSummary[];
}

export interface Content {
  readonly contentType: string;
  readonly body: string;
}

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const MANUAL = '/manual/';

/** @returns what gives the content at a path; null where there is none */
export function createPages(sources: PageSources): (path: string) => Promise<Content | null> {
  const { metrics } = sources;
  const pages = new Map<string, () => Content | Promise<Content>>([
    ['/', once(() => app('index.html', HTML))],
    ['/app.js', once(() => app('app.js', 'text/javascript; charset=utf-8'))],
    ['/style.css', once(() => app('style.css', CSS))],
    ['/manual', once(() => page(contents()))],
    ['/status', () => page(statusPage(readStatus(sources)))],
    ['/manual.css', () => ({ contentType: CSS, body: STYLE })],
    ['/openapi.json', once(openApi)],
    ['/metrics', async () => ({ contentType: metrics.contentType, body: await metrics.text() })],
  ]);
  for (const { name } of TOPICS)
    pages.set(
      `${MANUAL}${name}`,
      once(() => page(topic(sources, name))),
    );
  return async (path) => (await pages.get(path)?.()) ?? null;
}

/** What does not change is made at its first request: the thread that makes it also answers the API. */
function once(make: () => Content): () => Content {
  let made: Content | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

function page(content: Page): Content {
  return { contentType: HTML, body: document(content) };
}

function openApi(): Content {
  return { contentType: 'application/json', body: `${JSON.stringify(openApiDocument(), null, 2)}\n` };
}

/** A file of the console. */
function app(name: string, contentType: string): Content {
  const body = consoleFiles()[name];
  if (body === undefined) throw new Error(`the program was bundled without ${name} of the console`);
  return { contentType, body };
}

function contents(): Page {
  const entries = TOPICS.map(
    ({ name, title }) => html`<dt><a href="${MANUAL}${name}">${name}</a></dt><dd>${title}</dd>\n`,
  );
  return { title: 'Manual', body: html`<h1>Manual</h1>\n<dl>\n${entries}</dl>\n` };
}

function topic({ commands }: PageSources, name: string): Page {
  const text = TOPICS.find((known) => known.name === name)?.text(commands) ?? '';
  const names = TOPICS.map((known) => known.name).filter((known) => known !== name);
  return { title: name, body: html`${manualHtml(text, names)}` };
}

function readStatus(sources: PageSources): Status {
  const { monitor, enabled, metrics, now } = sources;
  const nowMs = now();
  return {
    nowMs,
    health: monitor.health(),
    alerts: monitor.alerts().map(alertDocument),
    enabled,
    windows: readOrNull(sources, (db) =>
      EXPORT_NAMES.flatMap((name) => windowsBetween(db, name, nowMs - DAY_MS, nowMs)),
    ),
    reach: readOrNull(sources, (db) => ({
      newswire: readReach(db, 'newswire', nowMs),
      imagewire: readReach(db, 'imagewire', nowMs),
    })),
    verified: readVerified(sources),
    backup: readBackup(sources),
    ingested: metrics.recent.minutes('ingested'),
    served: metrics.recent.minutes('served'),
  };
}

function readVerified({ folder }: PageSources): Status['verified'] {
  const record = readScrubRecord(folder);
  if (record === null) return null;
  const findings = record.findings.reduce((sum, { count }) => sum + count, 0);
  return { at: record.at, findings, not_compared: record.not_compared };
}

function readBackup({ backup: { folder, every_minutes } }: PageSources): Status['backup'] {
  try {
    return every_minutes === 0 ? null : backupTimes(folder);
  } catch {
    // The alert "backup overdue" has the cause.
    return null;
  }
}

function readOrNull<Value>(
  { monitor, detections }: PageSources,
  read: (db: Database) => Value,
): Value | null {
  if (monitor.isDamaged()) return null;
  try {
    return read(detections());
  } catch (error) {
    monitor.noteFault(error);
    return null;
  }
}
