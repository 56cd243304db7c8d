/** The manual of this very version, rendered by the appliance, and searched. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ManualTopic, ManualTopics } from '../admin/console/api-records.ts';
import { Filters } from './list.ts';
import { Heading, Read } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';

const FIELDS = [{ name: 'search', label: 'Search the manual' }] as const;

export function Manual({ route }: { route: Route }): VNode {
  const search = route.parameters.get('search');
  const topics = useReading<ManualTopics>(`/console/manual${queryOf({ search })}`);
  return html`<div class=${route.name === '' ? 'manual' : 'manual has-topic'}>
    <nav aria-label="Topics of the manual">
      <${Filters} fields=${FIELDS} route=${{ ...route, name: '' }} submit="Search" />
      <${Read} of=${topics}>${(answer: ManualTopics) => html`<${Topics} of=${answer} search=${search} current=${route.name} />`}</${Read}>
    </nav>
    ${route.name === '' ? html`<div><${Heading}>Manual</${Heading}><p class="soft">What “wirewatch manual” prints, for this version. Choose a topic, or search for words.</p></div>` : html`<${Topic} route=${route} />`}
  </div>`;
}

function Topics({
  of: { topics },
  search,
  current,
}: {
  of: ManualTopics;
  search: string | null;
  current: string;
}): VNode {
  if (topics.length === 0) return html`<p class="empty">No topic has all of these words.</p>`;
  return html`<ul>${topics.map(
    ({ name, title, excerpt }) =>
      html`<li key=${name}><a href=${linkTo('manual', { search }, name)} aria-current=${name === current ? 'page' : undefined}>${name}</a><span class="soft">${excerpt || title}</span></li>`,
  )}</ul>`;
}

function Topic({ route: { name, parameters } }: { route: Route }): VNode {
  const reading = useReading<ManualTopic>(`/console/manual/${encodeURIComponent(name)}`);
  const [, title = name] = /<h1[^>]*>([^<&]+)<\/h1>/.exec(reading.data?.html ?? '') ?? [];
  return html`<article><p class="back"><a href=${linkTo('manual')}>All topics</a></p><${Heading} about=${name}>${title}</${Heading}>
    <${Read} of=${reading}>${(topic: ManualTopic) => html`<${Text} markup=${topic.html} section=${parameters.get('section')} />`}</${Read}></article>`;
}

/** A link of the manual: to a topic, to a section of one, or to one of this topic. */
const INTERNAL = /^(?:\/manual\/([a-z-]+))?(?:#(.+))?$/;

/** The program's own text, in which nothing of an export stands: the one place where markup is taken as it is. */
function Text({ markup, section }: { markup: string; section: string | null }): VNode {
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (own.current === null) return;
    own.current.innerHTML = markup;
    // The page has one already.
    own.current.querySelector('h1')?.remove();
    for (const wide of own.current.querySelectorAll('pre, .wide')) wide.setAttribute('tabindex', '0');
    for (const link of own.current.querySelectorAll('a[href^="http"]')) {
      link.setAttribute('rel', 'noreferrer noopener');
      link.setAttribute('target', '_blank');
    }
  }, [markup]);
  useEffect(() => {
    document.getElementById(section ?? '')?.scrollIntoView();
  }, [markup, section]);
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const parts = link === null ? null : INTERNAL.exec(link.getAttribute('href') ?? '');
    if (parts === null) return;
    event.preventDefault();
    const [, topic, to] = parts;
    go(linkTo('manual', { section: to }, topic ?? location.hash.split(/[/?]/)[2] ?? ''));
  };
  return html`<div class="prose" ref=${own} onClick=${onClick}></div>`;
}
