/** The manual: its topics, a search in them, and one topic as HTML (api-records.ts). */
import { manualHtml } from '../../manual/html.ts';
import { TOPICS } from '../../manual/topics.ts';
import { ANY_TEXT, readParameters } from '../../query/parameters.ts';
import { Refused } from '../../refused.ts';
import type { ManualTopic, ManualTopics } from './api-records.ts';
import type { Read, Sources } from './sources.ts';

const SEARCH_CHARACTERS_MAX = 100;
const EXCERPT_CHARACTERS = 120;

export function readManualTopics(_sources: Sources, { query }: Read): ManualTopics {
  const { search } = readParameters(query, { search: ANY_TEXT });
  const words = (search ?? '').slice(0, SEARCH_CHARACTERS_MAX).toLowerCase().split(/\s+/).filter(Boolean);
  const topics = TOPICS.flatMap(({ name, title, markdown }) => {
    const lower = `${title} ${markdown}`.toLowerCase();
    if (!words.every((word) => lower.includes(word))) return [];
    return [{ name, title, excerpt: excerptOf(markdown, words[0]) }];
  });
  return { topics };
}

function excerptOf(text: string, word: string | undefined): string {
  const at = word === undefined ? -1 : text.toLowerCase().indexOf(word);
  if (at < 0) return '';
  const from = Math.max(0, at - EXCERPT_CHARACTERS / 2);
  return text
    .slice(from, from + EXCERPT_CHARACTERS)
    .replace(/\s+/g, ' ')
    .trim();
}

export function readManualTopic(_sources: Sources, { path, query }: Read): ManualTopic {
  readParameters(query, {});
  const name = path.slice(path.indexOf('/') + 1);
  const topic = TOPICS.find((known) => known.name === name);
  if (topic === undefined) throw new Refused('not_found', 'There is no such topic of the manual.');
  return { name, title: topic.title, html: manualHtml(topic.markdown) };
}
