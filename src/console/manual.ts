/** The manual of this very version, with a search. The appliance renders it. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ManualTopic, ManualTopics } from '../admin/console/api.ts';
import { filters } from './forms.ts';
import { soft } from './inline.ts';
import { Heading, read } from './parts.ts';
import { linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';

const FIELDS = [{ name: 'search', label: 'Search the manual' }] as const;

export function Manual({ route }: { route: Route }): VNode {
  const { name: current, parameters } = route;
  const search = parameters.get('search');
  const reading = useReading<ManualTopics>(`/console/manual${queryOf({ search })}`);
  const ariaCurrent = (name: string) => (name === current ? 'page' : undefined);
  const topics = ({ topics: all }: ManualTopics) => {
    if (all.length === 0) return html`<p class="empty">No topic has all of these words.</p>`;
    const topic = ({ name, title, excerpt }: ManualTopics['topics'][number]) => html`<li key=${name}>
      <a href=${linkTo('manual', { search }, name)} aria-current=${ariaCurrent(name)}>${name}</a>
      ${soft(excerpt || title)}
    </li>`;
    return html`<ul>${all.map(topic)}</ul>`;
  };
  const about = 'What “wirewatch manual” prints, for this version. Choose a topic, or search for words.';
  return html`<div class=${`manual ${current && 'has-topic'}`}>
    <nav aria-label="Topics of the manual">${filters({ fields: FIELDS, route, submit: 'Search' })}${read(reading, topics)}</nav>
    ${
      current === ''
        ? html`<div><${Heading}>Manual</${Heading}><p class="soft">${about}</p></div>`
        : html`<${Topic} name=${current} section=${parameters.get('section')} />`
    }
  </div>`;
}

function Topic({ name, section }: { name: string; section: string | null }): VNode {
  const reading = useReading<ManualTopic>(`/console/manual/topic${queryOf({ name })}`);
  const [, title = name] = /<h1[^>]*>([^<&]+)<\/h1>/.exec(reading.pages[0]?.html ?? '') ?? [];
  const text = (topic: ManualTopic) => html`<${Text} of=${topic} section=${section} />`;
  return html`<article><p class="back"><a href=${linkTo('manual')}>All topics</a></p>
    <${Heading} about=${name}>${title}</${Heading}>
    ${read(reading, text)}</article>`;
}

/** The only place that inserts markup: it is the program's own text, without anything from an export. */
function Text({ of: page, section }: { of: ManualTopic; section: string | null }): VNode {
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (own.current === null) return;
    own.current.innerHTML = page.html;
    own.current.querySelector('h1')?.remove();
    for (const wide of own.current.querySelectorAll('pre, .wide')) wide.setAttribute('tabindex', '0');
    for (const link of own.current.querySelectorAll('a[href^="http"]')) {
      link.setAttribute('rel', 'noreferrer noopener');
      link.setAttribute('target', '_blank');
    }
  }, [page]);
  useEffect(() => {
    document.getElementById(section ?? '')?.scrollIntoView();
  }, [page, section]);
  return html`<div class="prose" ref=${own}></div>`;
}
