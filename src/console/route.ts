/** The route: view and parameters in the fragment of the address, so that it can be bookmarked and sent. */
import { useAtEvent } from './server.ts';

/** `name`: a detection's id or a topic of the manual, after the view. */
export type Route = Readonly<{ view: string; name: string; parameters: URLSearchParams }>;

function current(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', name = ''] = path.split('/', 2);
  return { view: view || 'overview', name, parameters: new URLSearchParams(query) };
}

export const useRoute = () => useAtEvent(window, 'hashchange', current);

type Values = Readonly<Record<string, string | null | undefined>>;

export function queryOf(values: Values): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}

/** The address of a view. `name`: a detection's id or a topic, which need no encoding. */
export const linkTo = (view: string, values: Values = {}, name = ''): string =>
  `#/${view}${name === '' ? '' : `/${name}`}${queryOf(values)}`;

/** Opens a link. @param isReplaced a changed filter replaces its entry in the browser's history */
export const go = (link: string, isReplaced = false) => location[isReplaced ? 'replace' : 'assign'](link);
