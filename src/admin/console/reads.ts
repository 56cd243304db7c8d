/** The read of each path of the console (api.ts), and the small ones themselves. Runs on the operations thread. */
import { statSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { readTrail } from '../../auth/audit.ts';
import { fileDocument, filesPage } from '../../ingest/files/file-record.ts';
import { manualHtml } from '../../manual/html.ts';
import { markdownOf, TOPICS } from '../../manual/topics.ts';
import { readStatus } from '../../operations/status.ts';
import { operationForms } from '../../operations/table.ts';
import { list, readParameters } from '../../query/parameters.ts';
import { ANY_TEXT, integer } from '../../query/value-kinds.ts';
import { Refused, reasonOf } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { MINUTE_MS } from '../../time.ts';
import { readCustomers } from './customers.ts';
import { readLive, readOne, readSearch } from './detections.ts';
import { END, type Read, type Sources } from './sources.ts';
import { readTrends } from './trends.ts';
import { readWindow, readWindowMap } from './windows.ts';

const FILE_PARAMETERS = {
  outcome: list(ANY_TEXT),
  export: ANY_TEXT,
  name: ANY_TEXT,
  after: integer(0, Number.MAX_SAFE_INTEGER),
};
const ENTRIES_MAX = 50;
const AUDIT_PARAMETERS = {
  from: END,
  to: END,
  after: integer(0, Number.MAX_SAFE_INTEGER),
  /** A part of an entry, as JSON, in any case: of a user, a command, an id. */
  words: ANY_TEXT,
};
const SEARCH_CHARACTERS_MAX = 100;
const EXCERPT_CHARACTERS = 120;

/** By path behind `/console/`. */
export const READERS = {
  operations: ({ live }: Sources, { mayAct }: Read) => ({
    operations: operationForms().filter(
      ({ name }) => mayAct && (live.role === 'writer' || (live.role === 'standby' && name === 'promote')),
    ),
  }),
  /** A number for each topic: it differs when the views of that topic must be read again. Consoles ask every second. */
  changes(sources: Sources) {
    const { folder, live, jobs, nowMs } = sources;
    const [detections, access] = [sources.detections, sources.access].map(stateOf);
    const usage = statSync(folder.usage, { throwIfNoEntry: false })?.mtimeMs;
    const minute = Math.floor(nowMs / MINUTE_MS);
    const numberOf = (...parts: unknown[]) => crc32(JSON.stringify(parts));
    return {
      overview: numberOf(detections, access, usage, minute, live.alerts),
      windows: numberOf(detections, minute),
      detections: numberOf(detections),
      customers: numberOf(detections, access, usage),
      jobs: numberOf(jobs.list()),
      role: numberOf(live.role),
    };
  },
  overview: readStatus,
  trends: readTrends,
  windows: readWindowMap,
  window: readWindow,
  files(sources: Sources, { query }: Read) {
    const asked = readParameters(query, FILE_PARAMETERS);
    const wanted = { outcomes: asked.outcome, export: asked.export, part: asked.name, before: asked.after };
    const page = filesPage(sources.detections(), wanted);
    return { files: page.files.map(fileDocument), next: page.next === null ? null : `${page.next}` };
  },
  customers: readCustomers,
  'detections/live': readLive,
  'detections/search': readSearch,
  'detections/one': readOne,
  /** The audit trail, the newest first. */
  'history/audit'({ access }: Sources, { query }: Read) {
    const { from, to, after, words } = readParameters(query, AUDIT_PARAMETERS);
    const span = { from: from ?? undefined, to: to ?? undefined };
    const { changes: trail, damage: warning } = readTrail(access(), span);
    const sought = words?.toLowerCase() ?? '';
    const wanted = trail.filter((change) => JSON.stringify(change).toLowerCase().includes(sought));
    // `next` is an index in these, which only grow at their end.
    const end = after ?? wanted.length;
    const start = Math.max(0, end - ENTRIES_MAX);
    return { entries: wanted.slice(start, end).reverse(), next: start === 0 ? null : `${start}`, warning };
  },
  jobs: ({ jobs }: Sources) => ({ jobs: jobs.list() }),
  /** The topics of the manual; with `search`, those that contain every word, with the text around the first hit. */
  manual(_: Sources, { query }: Read) {
    const { search } = readParameters(query, { search: ANY_TEXT });
    const words = (search ?? '').slice(0, SEARCH_CHARACTERS_MAX).toLowerCase().split(/\s+/).filter(Boolean);
    const topics = TOPICS.flatMap((topic) => {
      const markdown = markdownOf(topic);
      const lower = `${topic.title} ${markdown}`.toLowerCase();
      if (!words.every((word) => lower.includes(word))) return [];
      return [{ ...topic, excerpt: excerptOf(markdown, words[0]) }];
    });
    return { topics };
  },
  /** `?name=alerts` */
  'manual/topic'(_: Sources, { query }: Read) {
    const asked = readParameters(query, { name: ANY_TEXT });
    const topic = TOPICS.find(({ name }) => name === asked.name);
    if (topic === undefined) throw new Refused('not_found', 'There is no such topic of the manual.');
    return { ...topic, html: manualHtml(markdownOf(topic), topic.name) };
  },
};
const READER_OF = new Map<string, (sources: Sources, asked: Read) => unknown>(Object.entries(READERS));

/** @returns JSON text; @throws Refused */
export async function read(sources: Sources, asked: Read): Promise<string> {
  const reader = READER_OF.get(asked.path);
  if (reader === undefined) throw new Refused('not_found', `There is no /console/${asked.path}.`);
  return JSON.stringify(await reader(sources, asked));
}

/** Differs when another connection has committed, by SQLite's `data_version`. Whoever reads a view reports errors. */
function stateOf(open: () => Database): unknown {
  try {
    return open().pragma('data_version', { simple: true });
  } catch (error) {
    return reasonOf(error);
  }
}

function excerptOf(markdown: string, word: string | undefined): string {
  const plain = markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/```\w*|[`*|#>]|^[ -]*-{3,}[ -]*$/gm, ' ')
    .replaceAll(/\s+/g, ' ');
  const at = word === undefined ? -1 : plain.toLowerCase().indexOf(word);
  if (at < 0) return '';
  const from = Math.max(0, at - EXCERPT_CHARACTERS / 2);
  const around = plain.slice(from, from + EXCERPT_CHARACTERS);
  const begun = from === 0 ? around : around.slice(around.indexOf(' ') + 1);
  return (from + EXCERPT_CHARACTERS < plain.length ? begun.slice(0, begun.lastIndexOf(' ')) : begun).trim();
}
