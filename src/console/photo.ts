/** The agency's own pictures, from its photo folder. Nothing is loaded from other servers: those would learn who looks. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DetectionEntry } from '../admin/console/api.ts';

/** The part of a signed address that the console's own server answers, too. */
const SIGNED = /\/photos\/\d+\?signature=[\w-]+$/;

/** Whether a detection is of a picture, of whatever type. */
export function hasPhoto({ source }: DetectionEntry): boolean {
  return 'image_url' in source;
}

/** @param look small in a list, large where it is the subject */
export function Photo({ of, look }: { of: DetectionEntry; look: 'small' | 'large' }): VNode {
  const [isGone, setIsGone] = useState(false);
  const { image_url, id } = of.source;
  const [path] = SIGNED.exec(typeof image_url === 'string' ? image_url : '') ?? [];
  if (path === undefined || isGone)
    return html`<span class=${`photo none ${look}`} role="img" aria-label="No picture in the photo folder">${look === 'large' && 'No picture in the photo folder'}</span>`;
  return html`<img class=${`photo ${look}`} src=${path} alt=${look === 'large' ? `Photo ${id ?? ''}` : ''}
    loading="lazy" onError=${() => setIsGone(true)} />`;
}
