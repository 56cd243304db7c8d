/** The two kinds of agency item, the exports that report them, and the number of a stream. */

export const CONTENT_TYPES = ['text', 'image'] as const;
export type ContentType = (typeof CONTENT_TYPES)[number];

export const EXPORT_NAMES = ['newswire', 'imagewire'] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

export const CONTENT_TYPE_OF_EXPORT: Readonly<Record<ExportName, ContentType>> = {
  newswire: 'text',
  imagewire: 'image',
};

export const EXPORT_OF_CONTENT_TYPE: Readonly<Record<ContentType, ExportName>> = {
  text: 'newswire',
  image: 'imagewire',
};

export const MATCH_TYPES: Readonly<Record<ContentType, string>> = {
  text: 'sentence_fingerprint',
  image: 'image_fingerprint',
};

export function isContentType(value: string): value is ContentType {
  return value === 'text' || value === 'image';
}

export function isExportName(value: string): value is ExportName {
  return value === 'newswire' || value === 'imagewire';
}

/** The greatest subscription, publisher or article number (contract: 999,999,999,999,999). */
export const NUMBER_MAX = 999_999_999_999_999;

/**
 * The number under which a stream, one subscription's detections of one content type, is stored.
 *
 * It is computed, not handed out: no table maps it, a copy of the database needs none, and with the greatest
 * subscription id it stays below 2^53.
 */
export function streamNumber(subscriptionId: number, contentType: ContentType): number {
  return subscriptionId * 2 + (contentType === 'image' ? 1 : 0);
}

/** The reverse of {@link streamNumber}. */
export function streamParts(stream: number): { subscription_id: number; content_type: ContentType } {
  return { subscription_id: Math.floor(stream / 2), content_type: stream % 2 === 1 ? 'image' : 'text' };
}
