/** A list of rows of one height that renders only the visible ones: 100,000 rows cost as much as 50. */

import { useLayoutEffect, useRef, useState, type ReactElement, type ReactNode } from "react";

interface Props {
  count: number;
  rowHeight: number;
  /** Rows of another height in a list that is not so wide, which then has the class "narrow". */
  narrow?: { below: number; rowHeight: number };
  label: string;
  row: (index: number) => ReactNode;
  /** Stay at the end while rows are added. */
  follow?: boolean;
  onFollowChange?: (follow: boolean) => void;
  /** Scroll to this row; another object scrolls again. */
  target?: { index: number } | undefined;
  /** What the first row shows: if it changes while rows are added, they were added before it. */
  head?: number | string | undefined;
}

const SPARE_ROWS = 12;

export function VirtualList({ count, rowHeight: wideHeight, narrow, label, row, follow = false, onFollowChange, target, head }: Props): ReactElement {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [isNarrow, setNarrow] = useState(false);
  const rowHeight = isNarrow && narrow ? narrow.rowHeight : wideHeight;
  const below = narrow?.below ?? 0;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => {
      setHeight(element.clientHeight);
      setNarrow(element.clientWidth < below);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [below]);

  useLayoutEffect(() => {
    const element = box.current;
    if (element && follow) element.scrollTop = element.scrollHeight;
  }, [count, follow, height, rowHeight]);

  useLayoutEffect(() => {
    const element = box.current;
    if (element && target) element.scrollTop = Math.max(0, target.index * rowHeight - element.clientHeight / 3);
  }, [target, rowHeight]);

  const known = useRef({ head, count });
  useLayoutEffect(() => {
    const before = known.current;
    known.current = { head, count };
    const element = box.current;
    // Older rows appear above: what is being read stays where it is.
    if (element && !follow && before.head !== head && count > before.count)
      element.scrollTop += (count - before.count) * rowHeight;
  }, [head, count, follow, rowHeight]);

  const scrolled = (): void => {
    const element = box.current;
    if (!element) return;
    const isUp = element.scrollTop < top - 1;
    setTop(element.scrollTop);
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight * 1.5;
    if (follow && isUp && !isAtEnd) onFollowChange?.(false);
    if (!follow && isAtEnd && !isUp) onFollowChange?.(true);
  };

  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE_ROWS);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE_ROWS);
  return (
    <div className={isNarrow ? "virtual narrow" : "virtual"} ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label={label}>
      <div className="virtual-space" style={{ height: count * rowHeight }}>
        <div className="virtual-rows" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, offset) => row(first + offset))}
        </div>
      </div>
    </div>
  );
}
