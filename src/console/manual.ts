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
    ${route.name === '' ? html`<div><${Heading}>Manual</${Heading}><p class="soft">What “wirewatch manual” prints, for this version. Choose a topic, or search for words.</p></div>` : html`<${Topic} name=${route.name} />`}
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

function Topic({ name }: { name: string }): VNode {
  const reading = useReading<ManualTopic>(`/console/manual/${encodeURIComponent(name)}`);
  return html`<article><p class="back"><a href=${linkTo('manual')}>All topics</a></p><${Heading} about=${name}>${name}</${Heading}><${Read} of=${reading}>${(topic: ManualTopic) => html`<${Text} html=${topic.html} />`}</${Read}></article>`;
}

/** A link of the manual: to another topic, or to a section of this one. */
const INTERNAL = /^(?:(?:\/manual\/|\.\/)?([a-z0-9-]+)(?:\.md)?(?:#.*)?|#(.+))$/;

/** The program's own text, in which nothing of an export stands: the one place where markup is taken as it is. */
function Text({ html: text }: { html: string }): VNode {
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (own.current === null) return;
    own.current.innerHTML = text;
    // The page has one already.
    own.current.querySelector('h1')?.remove();
  }, [text]);
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const [, topic, section] = INTERNAL.exec(link?.getAttribute('href') ?? '') ?? [];
    if (topic === undefined && section === undefined) return;
    event.preventDefault();
    if (topic !== undefined) go(linkTo('manual', {}, topic));
    else document.getElementById(section ?? '')?.scrollIntoView();
  };
  return html`<div class="prose" ref=${own} onClick=${onClick}></div>`;
}
