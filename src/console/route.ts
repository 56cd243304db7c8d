/** Where in the app one is: the view and its parameters, in the fragment of the address, so that it can be kept and sent. */
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  readonly view: string;
  /** Behind the view: a detection's id, a manual topic. */
  readonly name: string;
  readonly parameters: URLSearchParams;
}

function current(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', name = ''] = path.split('/', 2);
  return { view: view || 'overview', name, parameters: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const changed = () => setRoute(current());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

type Values = Readonly<Record<string, string | number | null | undefined>>;

/** The query for an address: what is empty is left out. */
export function queryOf(values: Values): string {
  const given = Object.entries(values).filter(([, value]) => (value ?? '') !== '');
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, `${value}`]))}`;
}

/** The address of a view. `name`: a detection's id or a topic, which need no encoding. */
export function linkTo(view: string, values: Values = {}, name = ''): string {
  return `#/${view}${name === '' ? '' : `/${name}`}${queryOf(values)}`;
}

/** Goes there; a filter that changes replaces its entry in the browser's history. */
export function go(link: string, isReplaced = false): void {
  history[isReplaced ? 'replaceState' : 'pushState'](null, '', link);
  dispatchEvent(new HashChangeEvent('hashchange'));
}
