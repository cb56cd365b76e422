-- The scenes of a cluster, their owners, and the loads that nodes report. As in `cluster.sql`, each transaction is one function, which the
-- crate `throng_cluster` calls and documents (`SceneRequest`). Additional results: 20 the node drains, 21 no node has that name.
ALTER TABLE cluster_node ADD COLUMN load BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cluster_node ADD COLUMN is_draining BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE cluster_node ADD COLUMN steady_since_ms BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN cluster_node.steady_since_ms IS 'start of the time in which all its heartbeats were in time, Unix time of the server';
COMMENT ON COLUMN cluster_node.load IS 'the load in its last heartbeat, in units of the game';
COMMENT ON COLUMN cluster_node.is_draining IS 'it gives up its scenes and claims none; a new process of the node does not drain';
CREATE TABLE cluster_scene (
    name TEXT COLLATE "C" PRIMARY KEY,
    specification BYTEA NOT NULL,
    pinned_to TEXT,
    node INTEGER,
    run BIGINT,
    epoch BIGINT NOT NULL DEFAULT 0
);
COMMENT ON COLUMN cluster_scene.specification IS 'data with which the game opens it';
COMMENT ON COLUMN cluster_scene.pinned_to IS 'the name of the node that runs it while that node is alive; NULL: any node';
COMMENT ON COLUMN cluster_scene.node IS 'the owner, together with its run; NULL: no owner';
COMMENT ON COLUMN cluster_scene.epoch IS 'counts the changes of the owner; a write with another epoch is refused';

-- After an outage of the store, all nodes are late. A node can declare others dead only after its own heartbeats were in time for this
-- long, so that the others can send a heartbeat first.
CREATE FUNCTION cluster_steady_after_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 3000::BIGINT';

-- Declares late nodes dead if the caller is steady: all of them, or only `_node`. Their heartbeats are refused from now on. A locked row is
-- skipped, because its heartbeat or another claim is in progress.
CREATE FUNCTION cluster_declare_dead(_by INTEGER, _node INTEGER, _at_ms BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cluster_node WHERE node = _by AND cluster_now_ms(_at_ms) - steady_since_ms > cluster_steady_after_ms();
    IF FOUND THEN
        WITH late AS (
            SELECT node FROM cluster_node WHERE NOT is_dead AND node = coalesce(_node, node) AND cluster_is_late(heartbeat_ms, _at_ms)
                ORDER BY node FOR UPDATE SKIP LOCKED
        )
        UPDATE cluster_node SET is_dead = TRUE FROM late WHERE cluster_node.node = late.node;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION cluster_claim_late(_node INTEGER, _run BIGINT, _players_max BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _late RECORD;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    PERFORM cluster_declare_dead(_node, NULL, _at_ms);
    -- Only players of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress. Runs
    -- that own players are found one after the other in the index, without reading all players.
    FOR _late IN
        WITH RECURSIVE owner AS (
            (SELECT node, run FROM cluster_player WHERE node IS NOT NULL ORDER BY node, run LIMIT 1)
            UNION ALL
            SELECT next.node, next.run FROM owner, LATERAL (
                SELECT node, run FROM cluster_player
                WHERE node IS NOT NULL AND (node, run) > (owner.node, owner.run) ORDER BY node, run LIMIT 1
            ) AS next
        )
        SELECT own.player, own.epoch FROM owner JOIN cluster_player AS own ON own.node = owner.node AND own.run = owner.run
            WHERE NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = owner.node AND alive.run = owner.run AND NOT alive.is_dead)
            ORDER BY own.player < 0, own.player LIMIT _players_max
    LOOP
        PERFORM FROM cluster_player WHERE player = _late.player AND epoch = _late.epoch FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            PERFORM cluster_give(_late.player, _node, _run);
        END IF;
    END LOOP;
    RETURN 0;
END $$;

-- A new process of a node starts without load, and does not drain.
CREATE OR REPLACE FUNCTION cluster_start_run(_name TEXT, _runs BIGINT, _at_ms BIGINT, OUT _code INTEGER, OUT _node INTEGER, OUT _run BIGINT)
    LANGUAGE plpgsql AS $$
DECLARE
    _known cluster_node%ROWTYPE;
BEGIN
    -- Processes that start at the same time wait for each other.
    PERFORM pg_advisory_xact_lock(1953002087, hashtext(current_schema() || ' cluster_node'));
    SELECT * INTO _known FROM cluster_node WHERE name = _name FOR UPDATE;
    _code := 0;
    IF NOT FOUND THEN
        SELECT coalesce(max(node) + 1, 0) INTO _node FROM cluster_node;
        _run := _runs;
        INSERT INTO cluster_node (node, name, run, heartbeat_ms, steady_since_ms)
            VALUES (_node, _name, _run, cluster_now_ms(_at_ms), cluster_now_ms(_at_ms));
    ELSIF _known.is_dead OR cluster_is_late(_known.heartbeat_ms, _at_ms) THEN
        _node := _known.node;
        _run := (_known.run / _runs + 1) * _runs;
        UPDATE cluster_node SET run = _run, heartbeat_ms = cluster_now_ms(_at_ms), steady_since_ms = cluster_now_ms(_at_ms),
            is_dead = FALSE, load = 0, is_draining = FALSE WHERE node = _node;
    ELSE
        _code := 7;
    END IF;
END $$;

DROP FUNCTION cluster_heartbeat(INTEGER, BIGINT, BIGINT);
CREATE FUNCTION cluster_heartbeat(_node INTEGER, _run BIGINT, _load BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_node SET run = _run, heartbeat_ms = cluster_now_ms(_at_ms), is_dead = FALSE, load = _load,
        steady_since_ms = CASE WHEN run = _run AND NOT cluster_is_late(heartbeat_ms, _at_ms) THEN steady_since_ms
            ELSE cluster_now_ms(_at_ms) END
        WHERE node = _node AND (run < _run OR (run = _run AND NOT is_dead));
    IF FOUND THEN
        RETURN 0;
    END IF;
    PERFORM FROM cluster_node WHERE node = _node AND run > _run;
    RETURN CASE WHEN FOUND THEN 6 ELSE 4 END;
END $$;

CREATE FUNCTION cluster_declare_scenes(_node INTEGER, _run BIGINT, _names TEXT[], _specifications BYTEA[], _pinned_to TEXT[], _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    -- The first of several with the same name. All nodes insert in the same order, so that nodes that start together do not deadlock.
    INSERT INTO cluster_scene (name, specification, pinned_to)
        SELECT DISTINCT ON (name COLLATE "C") name, specification, pinned_to
            FROM unnest(_names, _specifications, _pinned_to) WITH ORDINALITY AS new (name, specification, pinned_to, place)
            ORDER BY name COLLATE "C", place
        ON CONFLICT DO NOTHING;
    RETURN 0;
END $$;

-- All nodes, and then all scenes, in one statement, so that both are of the same moment. Only scenes have an epoch.
CREATE FUNCTION cluster_read_scenes(_at_ms BIGINT) RETURNS TABLE (_epoch BIGINT, _name TEXT, _node INTEGER, _run BIGINT,
    _is_alive BOOLEAN, _load BIGINT, _is_draining BOOLEAN, _specification BYTEA, _pinned_to TEXT) LANGUAGE sql STABLE AS $$
    SELECT entry.epoch, entry.name, entry.node, entry.run, is_alive, load, is_draining, specification, pinned_to FROM (
        SELECT NULL::BIGINT AS epoch, name, node, run, NOT is_dead AND NOT cluster_is_late(heartbeat_ms, _at_ms) AS is_alive, load,
            is_draining, NULL::BYTEA AS specification, NULL::TEXT AS pinned_to, node AS place FROM cluster_node
        UNION ALL
        SELECT epoch, name, node, run, NULL, NULL, NULL, specification, pinned_to, NULL FROM cluster_scene
    ) AS entry ORDER BY place NULLS LAST, entry.name COLLATE "C"
$$;

CREATE FUNCTION cluster_claim_scene(_node INTEGER, _run BIGINT, _name TEXT, _epoch BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_scene%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    PERFORM FROM cluster_node WHERE node = _node AND is_draining;
    IF FOUND THEN
        RETURN 20;
    END IF;
    SELECT * INTO _row FROM cluster_scene WHERE name = _name AND epoch = _epoch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 1;
    END IF;
    IF _row.node IS NOT NULL THEN
        PERFORM cluster_declare_dead(_node, _row.node, _at_ms);
        -- A late heartbeat alone is not enough: it may be in progress.
        PERFORM FROM cluster_node WHERE node = _row.node AND run = _row.run AND NOT is_dead;
        IF FOUND THEN
            RETURN 5;
        END IF;
    END IF;
    UPDATE cluster_scene SET node = _node, run = _run, epoch = epoch + 1 WHERE name = _name;
    RETURN 0;
END $$;

CREATE FUNCTION cluster_give_up_scene(_node INTEGER, _run BIGINT, _name TEXT, _epoch BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_scene SET node = NULL, run = NULL, epoch = epoch + 1
        WHERE name = _name AND node = _node AND run = _run AND epoch = _epoch;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

CREATE FUNCTION cluster_set_draining(_name TEXT, _is_draining BOOLEAN) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_node SET is_draining = _is_draining WHERE name = _name;
    RETURN CASE WHEN FOUND THEN 0 ELSE 21 END;
END $$;
