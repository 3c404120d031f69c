import { Progress } from "@mantine/core";
import { useEffect, useRef } from "react";

interface LevelMeterProps {
  /** How loud it is, from 0 to 1. */
  readonly level: () => number;
}

/** Shows how loud it is, at each frame and without the page being drawn anew. */
export function LevelMeter({ level }: LevelMeterProps) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      // Voices are quiet: the root lets them move the bar.
      if (bar.current) bar.current.style.width = `${Math.min(1, Math.sqrt(level())) * 100}%`;
      frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [level]);
  return (
    <Progress.Root size="sm" className="grows" transitionDuration={0}>
      <Progress.Section value={0} ref={bar} withAria={false} />
    </Progress.Root>
  );
}
